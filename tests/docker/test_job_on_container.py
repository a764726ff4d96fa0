"""The whole way on a Kafka container: members beat, some die, the job says so."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.members.feeder import Feeder
from heartwheel.proof.members.judge import ObservedExpiration, SentHeartbeats, decode_expiration, judge
from heartwheel.proof.members.schedule import FeedPlan
from heartwheel.proof.members.truth import read_truth

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
END_OF_TIME_MS = 2**62


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


def read_expirations(bootstrap: str, topic: str) -> list[ObservedExpiration]:
    """Read all expirations that are there by now."""
    return [decode_expiration(record) for record in read_topic(bootstrap, topic)]


def wait_for(process: subprocess.Popen[str], folder: Path, done: Callable[[], bool]) -> None:
    """Wait for something the job does; its log is the message if it ends instead."""
    while not done():
        assert process.poll() is None, (folder / "job.log").read_text()[-3000:]


def silences_of(bootstrap: str, topic: str) -> SentHeartbeats:
    """Derive from the heartbeat topic what must be expired."""
    beats = SentHeartbeats()
    for record in read_topic(bootstrap, topic):
        beats.add(record)
    return beats


def ids(expirations: Sequence[ObservedExpiration]) -> set[str]:
    """Collect the distinct ids."""
    return {expiration.id for expiration in expirations}


def test_heartbeats_in_expirations_out(
    kafka_container: KafkaContainer, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P1, P2: of members that die, pause, leave and return, exactly the silent ones are expired, each once."""
    bootstrap = kafka_container.bootstrap
    names = TopicNames(**{kind: topics(kind) for kind in TopicNames.__struct_fields__})
    ensure_topics(bootstrap, engine_topics(names))
    with job(bootstrap, names, tmp_path) as process:
        Feeder(PLAN, bootstrap, names.heartbeats, tmp_path / "truth.jsonl").run()
        beats = silences_of(bootstrap, names.heartbeats)
        assert beats.silences()
        wait_for(
            process,
            tmp_path,
            lambda: len(ids(read_expirations(bootstrap, names.expirations))) >= len(beats.silences()),
        )
    assert process.returncode == 0
    found = read_expirations(bootstrap, names.expirations)
    judgement = judge(read_truth(tmp_path / "truth.jsonl"), beats, found, until_ms=END_OF_TIME_MS)
    assert judgement.ok, judgement
    assert judgement.killed > 0
