"""Logs with ticks, written by hand, and what an audit derives of them: due verdicts that nobody wrote are missed.

A shard reads the logs of one partition, too, and must expire the same members.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.proof.audit import Audit, AuditConfig, FindingKind, Report, in_log_order
from heartwheel.proof.audit.partitions import home_of
from heartwheel.proof.testing import LogBuilder, ProducedRecord, read_records
from heartwheel.wire.events import Event
from heartwheel.wire.tick import read_tick

T0 = 1_795_239_789_000
RUN = "00000000000000a1"
OTHER_RUN = "00000000000000b2"
INTERVAL_MS = 200
SESSION_MS = 8_000
OUTAGE_MIN_MS = 3_000
CONFIG = AuditConfig(
    group_min_session_timeout_ms=1,
    outage_min_ms=OUTAGE_MIN_MS,
    tick_ms=1,
    judge_rejects=True,
    examples_max=1_000,
)


class Gone(NamedTuple):
    """Hold who must be expired, and when, ms after `T0`."""

    member_id: str | None
    at_ms: int


class TimedLog(LogBuilder):
    """Write a log with ticks; all times are ms after `T0`."""

    def tick(
        self,
        at_ms: int,
        *,
        partition: int = 0,
        run: str = RUN,
        mono_ms: int | None = None,
        partitions: int = 1,
        interval_ms: int = INTERVAL_MS,
    ) -> None:
        """Append a tick."""
        mono_ms = at_ms if mono_ms is None else mono_ms
        fields = {"type": "tick", "run": run, "mono_ms": mono_ms, "partitions": partitions, "interval_ms": interval_ms}
        self.add(T0 + at_ms, json.dumps(fields, separators=(",", ":")).encode(), partition=partition)

    def ticks(self, from_ms: int, to_ms: int, **fields: int | str) -> None:
        """Append the ticks of a time, both its ends included."""
        for at_ms in range(from_ms, to_ms + 1, INTERVAL_MS):
            self.tick(at_ms, **fields)  # type: ignore[arg-type]

    def beats(
        self, member_id: str, *at_ms: int, group_id: str = "g", partition: int = 0, session_ms: int = SESSION_MS
    ) -> None:
        """Append heartbeats of a member of a presence group."""
        for at in at_ms:
            self.beat(T0 + at, group_id, member_id, session_timeout_ms=session_ms, partition=partition)

    def event(self, at_ms: int, event: Event, *, partition: int = 0) -> None:
        """Append an event."""
        self.add(T0 + at_ms, event, partition=partition)

    def sort(self) -> None:
        """Give the records the order of their append times, and of equal ones that of their writing."""
        by_time = sorted(self.records, key=lambda record: record.append_ms)
        self.records, self._next = [], {}
        for record in by_time:
            self.add(record.append_ms, record.value, partition=record.partition)

    def in_order(self) -> list[ProducedRecord]:
        """Return the records as a reader merges them; within a partition they keep the order of their writing."""
        parts: dict[int, list[ProducedRecord]] = {}
        for record in self.records:
            parts.setdefault(record.partition, []).append(record)
        return list(in_log_order([sorted(part, key=lambda record: record.offset) for part in parts.values()]))


def audited(log: TimedLog, config: AuditConfig = CONFIG) -> Report:
    """Audit a log about which nothing was written."""
    audit = Audit(config)
    for record in log.in_order():
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    return audit.finish()


def gone(log: TimedLog, config: AuditConfig = CONFIG) -> list[Gone]:
    """List who must be expired by a log, in the order of time."""
    report = audited(log, config)
    missed = [one for one in report.findings if one.kind is FindingKind.MISSED and one.detail.startswith("expired")]
    found = sorted((Gone(one.member_id, (one.time_ms or 0) - T0) for one in missed), key=lambda one: one.at_ms)
    if not any(record.partition for record in log.records):
        assert sorted(_expired_by_a_shard(log, config)) == sorted(found)
    return found


def _expired_by_a_shard(log: TimedLog, config: AuditConfig) -> list[Gone]:
    """Return whom the engine expires; unless the audit knows the job's runs, the engine knows every run of the log."""
    ticks = [tick for record in log.records if (tick := read_tick(record.value)) is not None]
    rules = CoordinatorConfig(group_min_session_timeout_ms=1, empty_group_retention_ms=config.empty_group_retention_ms)
    shard = Shard(coordinator=rules, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    outcome = shard.apply(*read_records(log.records, runs=config.runs or sorted({tick.run for tick in ticks})))
    return [Gone(each.member_id, each.time_ms - T0) for each in outcome.verdicts if each.expiry_reason]


def group_at(home: int, *, partitions: int, before: tuple[int, int] | None = None) -> str:
    """Find a group whose home is a partition of so many, and was another one of fewer before the topic grew.

    Args:
        home: the partition.
        before: home and count before the topic grew.
    """
    names = (f"group-{number}" for number in range(10_000))
    return next(
        name
        for name in names
        if home_of(name, partitions) == home and (before is None or home_of(name, before[1]) == before[0])
    )
