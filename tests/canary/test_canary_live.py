"""A canary on a real broker, beside an engine that misses one silence, expires one living member, and is right else."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Self

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import LogRecord, read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.readers.canary.canary import Canary
from heartwheel.readers.canary.plan import groups_of
from heartwheel.settings import Settings
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import EventType
from heartwheel.wire.job import JOB_KEY, JobRow, Phase
from heartwheel.wire.verdict_rows import ExpirationRow
from support.job import Topics, wait_for

pytestmark = pytest.mark.kafka

SHARDS = 3


class FakeEngine:
    """Read heartbeats and write an expiration of each silence, but for what it is set to do wrong.

    Args:
        topics: where it reads and writes.
        deaf: the group whose silences it misses.
        hasty: the group of whose members it expires one that is alive.
    """

    def __init__(self, topics: Topics, *, deaf: str, hasty: str) -> None:
        self._topics, self._deaf, self._hasty = topics, deaf, hasty
        self._written: set[str] = set()
        self._job = Sender(topics.bootstrap, topics.names["job"], linger_ms=0)
        self._out = Sender(topics.bootstrap, topics.names["expirations"], linger_ms=0)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        row = JobRow(
            at_ms=1,
            started_ms=1,
            phase=Phase.LIVE,
            phase_since_ms=1,
            fault=None,
            faults=0,
            batches=1,
            records=0,
            last_batch=None,
            trigger_interval_ms=20_000,  # makes the objective generous: the machine may be busy
            tick_interval_ms=200,
            wheel_tick_ms=100,
            shards=SHARDS,
            version="0",
        )
        self._job.send(JOB_KEY.encode(), msgspec.json.encode(row))
        self._job.flush()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._job.close()
        self._out.close()

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            by_group: dict[str, list[LogRecord]] = {}
            for record in read_topic(self._topics.bootstrap, self._topics.names["heartbeats"]):
                by_group.setdefault((record.key or b"").decode(), []).append(record)
            for group, records in by_group.items():
                self._judge(group, records)
            self._out.flush()

    def _judge(self, group: str, records: Sequence[LogRecord]) -> None:
        events = [decode_event(record.value) for record in records]
        beats = [r.append_ms for r, event in zip(records, events, strict=True) if event.type is EventType.HEARTBEAT]
        session_ms = events[0].session_timeout_ms or 0
        silent = {last_ms for last_ms, next_ms in pairwise(beats) if next_ms - last_ms >= session_ms}
        if group == self._hasty:
            silent.update([beat_ms for beat_ms in beats[:-1] if beat_ms not in silent][:1])
        if group != self._deaf:
            for last_ms in sorted(silent):
                self._expire(group, events[0].member_id, last_ms, session_ms)

    def _expire(self, group: str, member: str, last_ms: int, session_ms: int) -> None:
        row = ExpirationRow(
            id=f"{group}-{last_ms}",
            group_id=group,
            member_id=member,
            group_instance_id=None,
            client_id=None,
            client_host=None,
            generation_id=1,
            reason="session_timeout",
            last_seen_ms=last_ms,
            session_timeout_ms=session_ms,
            deadline_ms=last_ms + session_ms,
            detected_ms=last_ms + session_ms,
            lateness_ms=0,
            group_state="Stable",
            shard=0,
        )
        if row.id not in self._written:
            self._written.add(row.id)
            self._out.send(group.encode(), msgspec.json.encode(row))


def test_a_canary_finds_what_is_missed_and_what_is_false(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """P1, P2: of three shards one is right, one is deaf, one is hasty: the canary tells which. At its end it leaves."""
    real = Topics(kafka_broker.bootstrap, topics)
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": kafka_broker.bootstrap, "topics": real.names},
            "engine": {"shards": SHARDS},
            "coordinator": {"group_min_session_timeout": "600ms"},
            "canary": {"heartbeat_interval": "100ms", "period": "2s", "missed_after": "5s"},
        }
    )
    right, deaf, hasty = groups_of("heartwheel-canary", SHARDS)
    heard: Counter[tuple[str, str]] = Counter()
    canary = Canary(settings, on_judged=lambda probe, judged: heard.update([(probe.group_id, judged.outcome.value)]))
    with FakeEngine(real, deaf=deaf, hasty=hasty), canary:
        wait_for(lambda: heard[right, "in_time"] and heard[deaf, "missed"] and heard[hasty, "false"], "all outcomes")
        figures = canary.figures()
    assert (heard[right, "missed"], heard[right, "false"]) == (0, 0)
    assert (heard[deaf, "in_time"], heard[deaf, "false"]) == (0, 0)
    assert (heard[hasty, "missed"], heard[hasty, "false"]) == (0, 1)
    assert figures.enabled
    assert figures.expected == figures.known + figures.missed + figures.void + figures.pending
    assert (figures.false_, figures.objective_ms) == (1, 40_300)
    last = {record.key: decode_event(record.value).type for record in real.read("heartbeats")}
    assert last == {group.encode(): EventType.LEAVE for group in (right, deaf, hasty)}
    assert not canary.figures().enabled
