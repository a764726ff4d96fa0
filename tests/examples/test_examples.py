"""The files in `examples/`, each run as its user runs it: in a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pyarrow.parquet as pq
import pytest
from nbclient import NotebookClient

from heartwheel import tick
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from support.job import wait_for
from support.late_files import EXAMPLES, beat, check_late_files, minutes, write
from support.spark_programs import BIN, driver_options

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(1200)]

ENV = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


@pytest.fixture(autouse=True)
def own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark start its workers, and a notebook its kernel, with the Python of the tests."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, sys.executable)


def run(folder: Path, *words: str) -> str:
    """Run a command in a folder to its end, and return what it printed."""
    log = folder / "log"
    with log.open("wb") as file:  # no pipe: Spark's workers may hold it for a while longer
        done = subprocess.run(words, cwd=folder, env=ENV, stdout=file, stderr=file, check=False)
    assert done.returncode == 0, log.read_text()[-5000:]
    return log.read_text()


def test_files_with_late_events(tmp_path: Path) -> None:
    """What `tests/spark/test_late_files.py` finds in one Spark, each run as its user starts it."""
    words = [str(BIN / "spark-submit"), *driver_options(), "--master", "local[2]"]
    words += ["--conf", "spark.sql.session.timeZone=UTC", str(EXAMPLES / "late_files.py")]
    check_late_files(tmp_path, lambda *arguments: run(tmp_path, *words, *arguments))


def test_a_declarative_pipeline(tmp_path: Path) -> None:
    """Its second run reads the new file alone, with the sessions of the first one."""
    folder = tmp_path / "pipeline"
    shutil.copytree(EXAMPLES / "pipeline", folder)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/silent-devices", (tmp_path / "storage").as_uri()))
    words = [str(BIN / "spark-pipelines"), "run", "--conf", "spark.sql.catalogImplementation=hive"]
    assert " ".join(words[1:]) in spec.read_text()
    write(folder / "beats" / "1.json", beat("a", 0, site="north"), beat("b", 0, site="south"))
    run(folder, *words)
    write(folder / "beats" / "2.json", beat("b", 20, site="south"), beat("b", 40, site="east"))
    run(folder, *words)
    rows = pq.read_table(folder / "spark-warehouse" / "silent_devices").to_pylist()
    assert minutes(rows) == [("a", "gone", 30, "timeout")]
    assert rows[0]["site"] == "north"


def test_devices_on_kafka(kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path) -> None:
    """What fell silent or said goodbye is in the other topic; what ticks show to be alive is not."""
    bootstrap, topic, output = kafka_broker.bootstrap, topics("events"), topics("gone")
    ensure_topics(bootstrap, [TopicSpec(topic, 2, {}), TopicSpec(output, 1, {})])
    sender = Sender(bootstrap, topic)

    def send(device: str, age_s: float, kind: str = "beat") -> None:
        at = datetime.now(UTC) - timedelta(seconds=age_s)
        event = {"device": device, "at": at.isoformat(), "type": kind, "firmware": "1.2"}
        sender.send(device.encode(), json.dumps(event).encode())

    for device, age_s, kind in (("dead", 60, "beat"), ("left", 60, "beat"), ("left", 50, "bye")):
        send(device, age_s, kind)
    words = [str(BIN / "spark-submit"), *driver_options(), "--master", "local[2]"]
    words += [str(EXAMPLES / "devices_on_kafka.py"), bootstrap, topic, output, str(tmp_path / "checkpoint")]
    with (
        (tmp_path / "log").open("wb") as log,
        tick.Ticker(bootstrap, topic, run=tick.new_run(), interval_ms=500),
        subprocess.Popen(words, cwd=tmp_path, env=ENV, stdout=log, stderr=log) as process,
    ):
        try:

            def gone() -> list[Any]:
                send("alive", 0)  # however long Spark takes to start, it never falls silent
                assert process.poll() is None, (tmp_path / "log").read_text()[-5000:]
                return [json.loads(record.value or b"") for record in read_topic(bootstrap, output)]

            # Each wait has a patience of its own: on a busy machine Spark alone needs most of one to start.
            wait_for(lambda: gone() or "Execution: Starting" in (tmp_path / "log").read_text(), "the query to start")
            wait_for(lambda: len(gone()) == 2, "two devices that are gone")
            rows = {row["device"]: row for row in gone()}
        finally:
            sender.close()
            process.send_signal(signal.SIGTERM)
    assert {name: row["reason"] for name, row in rows.items()} == {"dead": "timeout", "left": "ended"}
    assert {row["event"] for row in rows.values()} == {"gone"}
    assert rows["dead"]["firmware"] == "1.2"
    assert rows["dead"]["silent_for"] == 30.0


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its cells run, and say what their texts say."""
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", shlex.join([*driver_options(), "pyspark-shell"]))
    notebook = nbformat.read(EXAMPLES / "devices.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear all outputs before it is committed"
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = ["".join(map(_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]
    listed, ended, frame, described, streamed, figures = shown[1:]
    assert "('b', 'gone', '12:00:30', 'timeout')" in listed
    assert "('b', 'gone', '12:00:40', 'ended')" in ended
    assert "|     b| gone|2026-01-01 12:00:40|    1| ended|" in frame
    assert described.startswith("sessions  of device; gone after 5s without an event\n")
    (gone,) = (line for line in streamed.splitlines() if "|gone " in line)
    assert gone.startswith("|3 ")
    assert "'refused': 0" in figures


def _text(output: Any) -> str:
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))
