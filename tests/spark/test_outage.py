"""Outages of Kafka under a running job: the living stay, and who died in one is found a session later."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.job import Topics, beats_of, running, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]

SESSION_MS = 6_000
PAUSE_S = 9.0
LIVING = 100
DEAD = 20


@pytest.fixture
def own_broker() -> Iterator[EmbeddedKafka]:
    """Run a broker that this test alone may pause."""
    with EmbeddedKafka(heap="384m") as broker:
        yield broker


class _Members:
    """Send a heartbeat of every living member each second, for as long as nobody says stop."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._stop = threading.Event()
        self._beats = [beats_of(f"alive-{group}", 10, session_ms=SESSION_MS) for group in range(LIVING // 10)]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(1):
            for beats in self._beats:
                # A heartbeat whose fate is unknown is one that was not sent: the next one comes in a second.
                try:
                    self._topics.send(beats)
                except (AssertionError, ConnectionError):
                    break


def test_p1_a_paused_broker_expires_nobody_who_lives(own_broker: EmbeddedKafka, tmp_path: Path) -> None:
    """P1: the broker stands still for longer than a session: no living member is expired, each dead one is, later."""
    topics = Topics(own_broker.bootstrap, lambda name: name)
    with running(topics, tmp_path / "checkpoint") as job:
        job.until_live()
        with _Members(topics):
            job.wait_for(lambda: f"{LIVING} members" in job.log, "the members to be known")
            topics.send(beats_of("dead", DEAD, session_ms=SESSION_MS))
            job.wait_for(lambda: f"{LIVING + DEAD} members" in job.log, "the others to be known")
            own_broker.pause()
            time.sleep(PAUSE_S)
            own_broker.resume()
            wait_for(lambda: len(topics.expired()) >= DEAD, "the dead to be expired")
            job.until_clock(int(time.time() * 1000))
            assert topics.expired() == sorted(f"dead-m{i}" for i in range(DEAD))
        row = topics.rows("job")[-1]
        assert row["outages"] >= 1
        assert row["sessions_renewed"] >= LIVING
        assert row["ticker"]["silent_count"] == 0
        totals = [msgspec.json.decode(record.value or b"{}")["totals"] for record in topics.read("status")[-2:]]
        assert sum(each.get("sessions_renewed", 0) for each in totals) == row["sessions_renewed"]
        assert "Kafka was not writable for" in job.log
        job.stop()
