"""The testing kit: logs written by hand, cut into batches as you like, and run through real shards without Spark.

It is what heartwheel's own tests use, and is here for yours:

>>> from heartwheel.testing import LogBuilder, run_shard
>>> log = LogBuilder()
>>> log.beat(0, "orders", "a", session_timeout_ms=10_000)
>>> log.beat(3_000, "orders", "a", session_timeout_ms=10_000)
>>> [(v.kind.value, v.member_id, v.time_ms) for v in run_shard(log, clock_ms=13_000) if v.member_id]
[('member_expired', 'a', 13000)]

`heartwheel.simulation` goes further: whole histories from a seed, with clocks that are wrong and a job that dies
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.pack import Pack, decode_pack
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.shard import Shard
from heartwheel.spark.packer import Packer
from heartwheel.wire.events import Event, EventType, decode_event, encode_event
from heartwheel.wire.verdicts import Verdict

_RULES = CoordinatorConfig(group_min_session_timeout_ms=1)


class Record(NamedTuple):
    """Hold one record of the heartbeat topic.

    Args:
        append_ms: its append time, epoch ms.
        value: its value.
        partition: where it is.
        offset: its offset there.
    """

    append_ms: int
    value: bytes | None
    partition: int
    offset: int


class LogBuilder:
    """Write a heartbeat log by hand; offsets are counted for you, append times are yours."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._next: dict[int, int] = {}

    def add(self, append_ms: int, value: Event | bytes | None, *, partition: int = 0) -> None:
        """Append an event, or any bytes."""
        offset = self._next.get(partition, 0)
        self._next[partition] = offset + 1
        data = encode_event(value) if isinstance(value, Event) else value
        self.records.append(Record(append_ms, data, partition, offset))

    def beat(
        self,
        append_ms: int,
        group_id: str,
        member_id: str,
        *,
        generation_id: int = -1,
        session_timeout_ms: int | None = None,
        partition: int = 0,
    ) -> None:
        """Append a heartbeat."""
        event = Event(
            type=EventType.HEARTBEAT,
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
            session_timeout_ms=session_timeout_ms,
        )
        self.add(append_ms, event, partition=partition)


def pack_records(records: Iterable[Record], *, shards: int = 1, shard: int = 0, frame_max: int = 1 << 20) -> list[Pack]:
    """Pack records as the map side of the job does.

    Args:
        records: in the order of the log.
        shards: how many shards there are.
        shard: whose packs to return.
        frame_max: records a frame, as Spark cuts a partition into Arrow frames.
    """
    packer = Packer("consumer-heartbeats", shards)
    by_partition: dict[int, list[Record]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    packs = []
    for part in by_partition.values():
        for start in range(0, len(part), frame_max):
            rows = packer.pack(frame_of(part[start : start + frame_max]))
            packs += [decode_pack(payload) for s, rejected, payload in rows if s == shard and not rejected]
    return packs


def frame_of(records: Sequence[Record]) -> pa.RecordBatch:
    """Make the Arrow frame of records that Spark hands to the map side."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([None] * len(records), pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.array([hash(record.value) for record in records], pa.int64()),
            pa.array([record.partition for record in records], pa.int32()),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array([record.append_ms for record in records], pa.int64()),
        ],
        names=["key", "value", "value_hash", "partition", "offset", "append_ms"],
    )


def run_shard(
    log: LogBuilder,
    *,
    clock_ms: int,
    cuts: Sequence[int] = (),
    config: CoordinatorConfig = _RULES,
    limits: ShardLimits | None = None,
) -> list[Verdict]:
    """Run a log through one shard, its state encoded and decoded between batches.

    Args:
        log: the records.
        clock_ms: the clock after the last record, epoch ms.
        cuts: after how many records a batch ends; the clock of a batch is just before its successor's first record.
        config: the rules' configuration; by default every session timeout is accepted.
        limits: what the shard may hold.
    """
    blob, verdicts, clock = "", [], -1
    bounds = [0, *sorted(cuts), len(log.records)]
    for start, stop in pairwise(bounds):
        batch = log.records[start:stop]
        rest = [record.append_ms for record in log.records[stop:]]
        now = min([clock_ms, *(t - 1 for t in rest)])
        shard = Shard(coordinator=config, limits=limits or ShardLimits(), clock_ms=clock, blob=blob)
        outcome = shard.apply(pack_records(batch), max(clock, now))
        verdicts += outcome.verdicts
        blob, clock = shard.encode(), shard.clock_ms
    return verdicts


def run_rules(log: LogBuilder, *, clock_ms: int, config: CoordinatorConfig = _RULES) -> list[Verdict]:
    """Run a log through the rules alone, event by event: the reference for `run_shard`."""
    verdicts: list[Verdict] = []
    machines: dict[str, GroupMachine] = {}
    for record in log.records:
        event = decode_event(record.value)
        if event.group_id not in machines:
            machines[event.group_id] = GroupMachine(Group(group_id=event.group_id), config, verdicts.append)
        machines[event.group_id].apply(event, record.append_ms)
    for machine in machines.values():
        machine.advance(clock_ms)
    return verdicts


def by_group(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Sort verdicts by group; only the order within a group is promised (P4)."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.group_id, []).append(verdict)
    return groups
