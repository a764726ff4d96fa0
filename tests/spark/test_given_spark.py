"""The job on a Spark that others have started: by `spark-submit` from the wheel, or in a session that is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pyspark
import pytest

from heartwheel.engine.runtime.driver.shipping import PACKAGES
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from support.job import Job, Topics, beats_of, ended
from support.processes import command_of, descendants_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
IN_A_SESSION = """
import os, sys
from pyspark.sql import SparkSession
from heartwheel.front.cli import main

builder = SparkSession.builder.master("local[2]").config("spark.driver.extraClassPath", os.environ["JARS"])
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.session.timeZone", "Europe/Paris")
session = builder.getOrCreate()
sys.argv[0] = "heartwheel"
main()
print("returned; the session counts", session.range(7).count(), session.conf.get("spark.sql.session.timeZone"))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def job(kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path) -> Job:
    """Give a job that takes the Spark that it finds."""
    found = Job(Topics(kafka_broker.bootstrap, topics), tmp_path / "checkpoint")
    more = ["spark.master=submitted", "checkpoint.shared=true", "spark.shuffle_partitions=2"]
    found.command += [word for flag in more for word in ("--set", flag)]
    return found


def _submit(job: Job, wheel: Path, folder: Path, *words: str) -> None:
    """Have a job started by `spark-submit`, with the main file of the page."""
    page = (ROOT / "docs" / "managed-spark.md").read_text(encoding="utf-8")
    (main,) = re.findall(r"```python\n(.+?)```", page, re.DOTALL)
    (folder / "main.py").write_text(f"import sys, heartwheel\nprint(heartwheel.__file__)\n{main}")
    arguments = job.command[job.command.index("run") :]
    python = ("--conf", f"spark.pyspark.python={sys.executable}")
    submit = (str(SUBMIT), "--master", "local[2]", "--driver-memory", "1g", *python, "--py-files", str(wheel))
    job.command = [*submit, *words, str(folder / "main.py"), *arguments]


def _expires_and_ends(job: Job) -> None:
    """Let members fall silent, wait for their verdicts, and end the driver's Python as its service would."""
    job.until_live()
    job.topics.send(beats_of("dies", 5, session_ms=2_000))
    job.wait_for(lambda: len(job.topics.expired()) == 5, "five verdicts")
    drivers = [
        pid for pid in (job.pid, *descendants_of(job.pid)) if re.search(r"python\S* .*main\.py", command_of(pid))
    ]
    os.kill(next(pid for pid in drivers if "java" not in command_of(pid).split()[0]), signal.SIGTERM)
    assert job.end() == 0, job.log[-3000:]
    assert job.topics.expired() == [f"dies-m{number}" for number in range(5)]


def test_spark_submit_runs_the_wheel(job: Job, wheel: Path, tmp_path: Path) -> None:
    """Driver and workers have heartwheel from the wheel; the connector comes with --jars."""
    jars = ",".join(map(str, fetch_jars("spark")))
    _submit(job, wheel, tmp_path, "--jars", jars)
    with ended(job.start()):
        _expires_and_ends(job)
    assert f"{wheel}/heartwheel/__init__.py" in job.log


def test_spark_submit_without_the_connector_is_refused(job: Job, wheel: Path, tmp_path: Path) -> None:
    """A JVM that runs takes no jars any more, so the error names those that it needs; exit 2, no traceback."""
    _submit(job, wheel, tmp_path)
    with ended(job.start()):
        assert job.end() == 2
    assert f"error: Spark {pyspark.__version__} was started without its Kafka connector\nhint: " in job.log
    assert "Traceback" not in job.log


def test_a_session_that_is_there_is_used_and_left(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook's process: the job has a session of its own on that Spark, and neither stops nor changes it."""
    monkeypatch.setenv("JARS", os.pathsep.join(map(str, fetch_jars("spark"))))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    (tmp_path / "main.py").write_text(IN_A_SESSION)
    job.command = [sys.executable, str(tmp_path / "main.py"), *job.command[job.command.index("run") :]]
    with ended(job.start()):
        _expires_and_ends(job)
    assert "returned; the session counts 7 Europe/Paris" in job.log


def test_a_session_that_is_there_must_be_asked_for(job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a master of its own the job would run elsewhere than its configuration says: it is refused."""
    monkeypatch.setenv("JARS", "")
    (tmp_path / "main.py").write_text(IN_A_SESSION)
    words = job.command[job.command.index("run") :]
    job.command = [sys.executable, str(tmp_path / "main.py"), *words, "--set", "spark.master=local[2]"]
    with ended(job.start()):
        assert job.end() == 2
    assert "this process has a Spark session already, and spark.master is local[2]" in job.log
    assert "hint: --master submitted uses it" in job.log


def test_the_wheel_has_what_services_ask_for(wheel: Path) -> None:
    """Its entry point is a function that can be called, and the packages for executors are in it whole."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (file,) = (name for name in names if name.endswith("/entry_points.txt"))
        assert packed.read(file).decode().split() == [
            "[console_scripts]",
            "heartwheel",
            "=",
            "heartwheel.front.cli:main",
        ]
    assert callable(EntryPoint("heartwheel", "heartwheel.front.cli:main", "console_scripts").load())
    for package in PACKAGES:
        root = Path(package.__path__[0])
        assert {f"{root.name}/{each.relative_to(root).as_posix()}" for each in root.rglob("*.py")} <= names
