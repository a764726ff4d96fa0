"""Each release of PySpark gets the Kafka connector that was locked for it; on any other the job is refused by name."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from heartwheel.kafka.broker.jars import locked_jars
from heartwheel.kafka.broker.spark_release import UnfitSparkError, connector_set, installed_spark

SETS = ("broker", "spark-4.2", "spark-4.3")


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with what lies in a folder or archive first among what is imported."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    command = [sys.executable, "-m", "heartwheel", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}, timeout=60
    )


def test_the_installed_release_has_a_connector() -> None:
    """The version is that of the package, and the set `spark` is that of its minor release."""
    assert installed_spark() == pyspark.__version__
    minor = ".".join(pyspark.__version__.split(".")[:2])
    assert locked_jars("spark") == locked_jars(f"spark-{minor}")


@pytest.mark.parametrize("version", ["4.2.0", "4.2.1", "4.2.0-amzn-1", "4.2.0+amzn.1", "4.2.0.dev1"])
def test_patches_and_vendors_builds_count_as_their_minor_release(version: str) -> None:
    """What follows the minor release changes no class that the connector names."""
    assert connector_set(SETS, version) == "spark-4.2"


@pytest.mark.parametrize("version", ["3.5.6", "4.20.0", "4.4.0"])
def test_any_other_release_is_refused(version: str) -> None:
    """The error names what was found and what works."""
    with pytest.raises(UnfitSparkError, match=version) as caught:
        connector_set(SETS, version)
    assert caught.value.hint == "install one of these releases: 4.2, 4.3"


@pytest.mark.parametrize("command", ["run", "operations"])
def test_a_job_is_refused_before_it_asks_kafka(command: str, tmp_path: Path) -> None:
    """An old PySpark, here in an archive as `spark-submit` gives it, ends the command with 2 and one error."""
    with zipfile.ZipFile(tmp_path / "pyspark.zip", "w") as packed:
        packed.writestr("pyspark/__init__.py", "")
        packed.writestr("pyspark/version.py", '__version__: str = "3.5.6"\n')
    done = _run(tmp_path / "pyspark.zip", command, "--bootstrap-servers", "127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr == (
        "error: the job does not run on the installed PySpark, which is 3.5.6\n"
        "hint: install one of these releases: 4.0, 4.1, 4.2, 4.3\n"
    )
