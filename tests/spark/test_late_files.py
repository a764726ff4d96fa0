"""The example about files with late events, on the Spark that is there; `tests/examples` starts it as its users do."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.late_files import EXAMPLES, check_late_files

pytestmark = pytest.mark.spark


def test_files_with_late_events(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run reads the new files, with the sessions of the run before."""
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _builder: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda _session: None)

    def run(folder: str, output: str) -> str:
        monkeypatch.setattr("sys.argv", ["late_files.py", folder, output])
        runpy.run_path(str(EXAMPLES / "late_files.py"))
        return capsys.readouterr().out

    check_late_files(tmp_path, run)
