"""A shard that has forgotten a heartbeat: the query ends by name, starts again, and every verdict is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.job import Job, Topics, beats_of, ended
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]

FAULTY = Path(__file__).parents[1] / "support" / "faulty"
MEMBERS = 10


@pytest.mark.timeout(600)
def test_f_a_forgotten_heartbeat_ends_the_query_and_is_read_again(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members come back by heartbeats that workers leave out and shards forgot: told, read again, nobody falsely."""
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "forget").touch()
    monkeypatch.setenv("HEARTWHEEL_TEST_FAULTS", str(faults))
    monkeypatch.setenv("PYTHONPATH", str(FAULTY), prepend=os.pathsep)
    made = Topics(kafka_broker.bootstrap, topics)
    job = Job(made, tmp_path / "checkpoint")
    with ended(job.start()):
        job.until_live()

        def came_back_in_vain() -> bool:
            before = len(made.expired())
            made.send(beats_of("again", MEMBERS))
            job.wait_for(lambda: "does not know a heartbeat" in job.log or len(made.expired()) > before, "a verdict")
            return "does not know a heartbeat" in job.log

        job.wait_for(came_back_in_vain, "a heartbeat without bytes that no shard knows")
        told = job.log.count("does not know a heartbeat")
        for group in ("after", "again"):
            made.send(beats_of(group, MEMBERS))
            job.wait_for(lambda name=group: f"{name}-m0" in made.expired(), "who fell silent after it")  # type: ignore[misc]
        made.send(beats_of("again", MEMBERS))
        job.until_clock(made.clock_ms() + 5_000)
        assert job.log.count("does not know a heartbeat") == told
        assert job.stop() == 0
    assert_exact(job, due=["after", "again"], members=MEMBERS)
