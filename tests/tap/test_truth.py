"""The truth: real consumers of real groups, and Kafka's own coordinator as the judge of the whole job."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.proof, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run real consumers for a while, with a restart of their broker in the middle, and read what came of it."""
    root = tmp_path_factory.mktemp("truth")
    command = [sys.executable, "-m", "heartwheel", "demo", "--real", "--duration", "100s", "--restarts", "1"]
    command += ["--folder", str(root / "demo"), "--json", str(root / "report.json")]
    with (root / "out").open("wb") as out:
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    said = (root / "out").read_text()[-4_000:]
    assert (root / "report.json").exists(), said
    found: dict[str, Any] = json.loads((root / "report.json").read_text())
    assert code == 0, said
    return found


def test_every_removal_of_the_coordinator_is_a_verdict_and_the_other_way_round(report: dict[str, Any]) -> None:
    """P1, P3: nobody is removed by the engine whom Kafka's coordinator did not remove, and nobody is missed."""
    assert (report["false"], report["missed"], report["different_reason"]) == (0, 0, 0), report["differ"]
    assert report["agree"] >= 10
    assert {"session_timeout", "left"} <= set(report["by_reason"])


def test_moments_are_those_of_the_coordinator(report: dict[str, Any]) -> None:
    """The deadline of each verdict is the moment at which the coordinator's timer ended, wherever the tap read it."""
    assert -1_000 <= report["apart_ms"]["min"] <= report["apart_ms"]["max"] <= 1_000
    assert abs(report["apart_ms"]["p50"]) <= 50


def test_a_restart_of_the_broker_loses_no_line(report: dict[str, Any]) -> None:
    """The broker is restarted in mid-run, and nothing of its logs was rejected or unreadable."""
    assert report["restarts"] == 1
    assert (report["tap"]["unreadable"], report["rejected"]) == (0, 0)
