"""The whole way on a Kafka container: members beat, some die, the job says so."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.members.feeder import Feeder
from heartwheel.proof.members.schedule import FeedPlan
from heartwheel.proof.members.truth import Turn
from heartwheel.wire.verdict_rows import ExpirationRow
from support.silences import SentHeartbeats, Silence

if TYPE_CHECKING:
    from support.kafka_container import KafkaContainer

pytestmark = pytest.mark.docker

PLAN = FeedPlan(
    groups=3,
    members_per_group=6,
    heartbeat_interval_ms=500,
    session_timeout_ms=2000,
    duration_ms=8000,
    kill_rate=3.0,
    pause_rate=3.0,
    leave_rate=1.0,
    leave_at_end=True,
)


@contextmanager
def job(bootstrap: str, names: TopicNames, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the job as people do, with its log in a file; stop it in order at the end."""
    values = {
        **{f"kafka.topics.{kind}": getattr(names, kind) for kind in names.__struct_fields__},
        "coordinator.group_min_session_timeout": "1s",
        "spark.master": "local[2]",
        "engine.shards": "4",
    }
    flags = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    command = ["run", "--bootstrap-servers", bootstrap, "--checkpoint", str(folder / "checkpoint"), *flags]
    with (
        (folder / "job.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-c", "from heartwheel.front.cli import main; main()", *command], stderr=log, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def read_expirations(bootstrap: str, topic: str) -> dict[str, Silence]:
    """Read which silences are expired by now, by the ids of the rows."""
    rows = (msgspec.json.decode(record.value or b"", type=ExpirationRow) for record in read_topic(bootstrap, topic))
    return {row.id: Silence(row.group_id, row.member_id, row.deadline_ms) for row in rows}


def wait_for(process: subprocess.Popen[str], folder: Path, done: Callable[[], bool]) -> None:
    """Wait for something the job does; its log is the message if it ends instead."""
    while not done():
        assert process.poll() is None, (folder / "job.log").read_text()[-3000:]


def silences_of(bootstrap: str, topic: str) -> set[Silence]:
    """Return who must be expired by the heartbeat topic."""
    beats = SentHeartbeats()
    for record in read_topic(bootstrap, topic):
        beats.add(record)
    return beats.silences()


def test_heartbeats_in_expirations_out(
    kafka_container: KafkaContainer, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P1, P2: of members that die, pause, leave and return, exactly the silent ones are expired, each once."""
    bootstrap = kafka_container.bootstrap
    names = TopicNames(**{kind: topics(kind) for kind in TopicNames.__struct_fields__})
    ensure_topics(bootstrap, engine_topics(names))
    with job(bootstrap, names, tmp_path) as process:
        fed = Feeder(PLAN, bootstrap, names.heartbeats, tmp_path / "truth.jsonl").run()
        silent = silences_of(bootstrap, names.heartbeats)
        wait_for(process, tmp_path, lambda: len(read_expirations(bootstrap, names.expirations)) >= len(silent))
    assert process.returncode == 0
    assert len(silent) >= fed.turns[Turn.KILLED] > 0
    found = read_expirations(bootstrap, names.expirations)
    assert len(found) == len(silent)
    assert set(found.values()) == silent
