"""The testing kit: logs written by hand, cut into batches as you like, and run through real shards without Spark.

It is what heartwheel's own tests use, and is here for yours:

>>> from heartwheel.proof.testing import LogBuilder, run_shard
>>> log = LogBuilder()
>>> log.beat(0, "orders", "a", session_timeout_ms=10_000)
>>> log.beat(3_000, "orders", "a", session_timeout_ms=10_000)
>>> [(v.kind.value, v.member_id, v.time_ms) for v in run_shard(log, clock_ms=13_000) if v.member_id]
[('member_expired', 'a', 13000)]

`heartwheel.proof.simulation` goes further: whole histories from a seed, with clocks that are wrong and a job that dies
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.manager import ClassicRules
from heartwheel.engine.rules.model import Group
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.pack import Pack
from heartwheel.engine.shard.sent_pack import decode_relayed, decode_sent
from heartwheel.engine.shard.shard import Shard
from heartwheel.engine.time import Reading, ReadingsBuilder, encode_readings
from heartwheel.proof.log_builder import RUN, TICK_INTERVAL_MS, LogBuilder, ProducedRecord
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import decode_request
from heartwheel.wire.verdicts import Verdict

__all__ = [
    "OUTAGE_MIN_MS",
    "RUN",
    "TICK_INTERVAL_MS",
    "LogBuilder",
    "ProducedRecord",
    "Read",
    "arrivals",
    "by_group",
    "frame_of",
    "read_records",
    "run_rules",
    "run_shard",
    "until",
]

_RULES = CoordinatorConfig(group_min_session_timeout_ms=1)


OUTAGE_MIN_MS: Final = 3_000
"""Shortest gap that may be an outage, ms."""


class Read(NamedTuple):
    """What one batch has read, as `Shard.apply` takes it.

    Args:
        packs: the records of one shard.
        relayed: the records of feeds, with the feed's name.
    """

    packs: list[Pack]
    readings: list[Reading]
    relayed: Sequence[tuple[str, Pack]] = ()


def read_records(
    records: Iterable[ProducedRecord],
    *,
    clock_ms: int | None = None,
    shards: int = 1,
    shard: int = 0,
    frame_max: int = 1 << 20,
    runs: Sequence[str] = (RUN,),
    outage_min_ms: int = OUTAGE_MIN_MS,
    feeds: Sequence[str] = (),
) -> Read:
    """Read records as the map side of the job does.

    Args:
        records: in the order of the log.
        clock_ms: append time of one tick more at the end of every partition, epoch ms; left out, there is none.
        shard: whose packs to return.
        frame_max: records a frame, as Spark cuts a partition into Arrow frames.
        runs: the known runs of the ticker.
        outage_min_ms: shortest gap that may be an outage, ms.
        feeds: the feeds whose times are believed.
    """
    packer, readings = Packer("consumer-heartbeats", shards, feeds=feeds), ReadingsBuilder(runs, outage_min_ms)
    by_partition: dict[int, list[ProducedRecord]] = {}
    for record in records:
        by_partition.setdefault(record.partition, []).append(record)
    packs, relayed = [], []
    for part in by_partition.values():
        for start in range(0, len(part), frame_max):
            rows = list(packer.pack(frame_of(part[start : start + frame_max]), readings))
            packs += [decode_sent(data) for s, kind, data in rows if s == shard and kind is PayloadKind.RECORDS]
            relayed += [decode_relayed(data) for s, kind, data in rows if s == shard and kind is PayloadKind.RELAYED]
    read = readings.readings()
    if clock_ms is not None:
        read += until(clock_ms, *(each.partition for each in read))
    return Read(packs, read, relayed)


def arrivals(
    records: Sequence[ProducedRecord],
    packer: Packer,
    *,
    shard: int = 0,
    runs: Sequence[str] = (RUN,),
    outage_min_ms: int = OUTAGE_MIN_MS,
) -> pd.DataFrame:
    """Make what Spark hands to the state function of a shard, of records that one task has read.

    Args:
        records: in the order of the log.
        packer: of the task's worker.
        runs: the known runs of the ticker.
        outage_min_ms: shortest gap that may be an outage, ms.
    """
    readings = ReadingsBuilder(runs, outage_min_ms)
    rows = [row[1:] for row in packer.pack(frame_of(records), readings) if row[0] == shard] if records else []
    if found := readings.readings():
        rows.append((PayloadKind.READINGS, encode_readings(found)))
    return pd.DataFrame(rows, columns=["kind", "payload"])


def until(clock_ms: int, *partitions: int) -> list[Reading]:
    """Make the readings of a batch in which nothing but a tick was read of each partition.

    Args:
        clock_ms: its append time, epoch ms.
        partitions: which ones; left out, partition 0.
    """
    return [Reading(partition, 1 << 60, clock_ms, clock_ms, clock_ms) for partition in partitions or (0,)]


def frame_of(records: Sequence[ProducedRecord]) -> pa.RecordBatch:
    """Make the Arrow frame of records that Spark hands to the map side."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([None] * len(records), pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.array([record.partition for record in records], pa.int32()),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array([record.append_ms for record in records], pa.int64()),
        ],
        names=["key", "value", "partition", "offset", "append_ms"],
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
        clock_ms: append time of a last tick in every partition, epoch ms.
        cuts: after how many records a batch ends.
        config: the rules' configuration; by default every session timeout is accepted.
    """
    blob, verdicts = "", []
    bounds = [0, *sorted(cuts), len(log.records)]
    for start, stop in pairwise(bounds):
        shard = Shard(coordinator=config, limits=limits or ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, blob=blob)
        verdicts += shard.apply(*read_records(log.records[start:stop])).verdicts
        blob = shard.encode()
    shard = Shard(coordinator=config, limits=limits or ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, blob=blob)
    partitions = {record.partition for record in log.records} or {0}
    return verdicts + shard.apply([], until(clock_ms, *partitions)).verdicts


def run_rules(log: LogBuilder, *, clock_ms: int, config: CoordinatorConfig = _RULES) -> list[Verdict]:
    """Run a log without outages through the rules alone, event by event: the reference for `run_shard`."""
    verdicts: list[Verdict] = []
    managers: dict[str, ClassicRules] = {}
    epochs = EpochConfig(config)
    newest_ms: dict[int, int] = {}
    order = []
    for record in log.records:
        newest_ms[record.partition] = max(record.append_ms, newest_ms.get(record.partition, record.append_ms))
        order.append((newest_ms[record.partition], record.partition, record.offset, record.value))
    for effective_ms, _, _, value in sorted(order, key=lambda each: each[:3]):
        try:
            request = decode_request(value)
        except RejectedError:
            continue
        if request.group_id not in managers:
            managers[request.group_id] = ClassicRules(Group(group_id=request.group_id), epochs, verdicts.append)
        managers[request.group_id].apply(request, effective_ms)
    for manager in managers.values():
        manager.advance(clock_ms)
    return verdicts


def by_group(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Sort verdicts by group; only the order within a group is promised (P4)."""
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.group_id, []).append(verdict)
    return groups
