"""The job without batches: it reads the whole log at once, and knows all runs and partition counts from the start."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.state.schema import NEW_STATE
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.time import ReadingsBuilder, encode_readings
from heartwheel.proof.log_builder import ProducedRecord
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.proof.simulation.world.checkpoint import SinkRecord
from heartwheel.proof.simulation.world.job import config_of
from heartwheel.proof.testing import frame_of

if TYPE_CHECKING:
    import pandas as pd


def read_at_once(
    plan: Plan, records: list[ProducedRecord], runs: tuple[str, ...], counts: tuple[int, ...], *, tick_ms: int
) -> list[tuple[list[SinkRecord], str]]:
    """Read a log in one batch without limits; return the rows of each shard, and the blob of its state.

    Args:
        records: the records by partition, in the order of their offsets.
        runs: the runs of the job's ticker.
        counts: the numbers of partitions at the starts of the job.
    """
    known = tuple((count, 0) for count in counts)
    limits = ShardLimits(verdicts_max=2**62)
    config = replace(config_of(plan), runs=runs, tick_ms=tick_ms, limits=limits, counts=known)
    packer = Packer("consumer-heartbeats", plan.shards, value_bytes_max=VALUE_BYTES_MAX, feeds=plan.relayed.names)
    packer.begin(BatchOf("at once", 0))
    readings = ReadingsBuilder(runs, plan.outage_min_ms)
    packed: dict[int, list[tuple[PayloadKind, bytes]]] = defaultdict(list)
    for shard, kind, payload in packer.pack(frame_of(records), readings) if records else ():
        packed[shard].append((kind, payload))
    found = readings.readings()
    time: list[tuple[PayloadKind, bytes]] = [(PayloadKind.READINGS, encode_readings(found))] if found else []
    results = []
    for shard in range(plan.shards):
        payloads: list[Any] = [*packed[shard], *time]
        frame = {"kind": [kind for kind, _ in payloads], "payload": [payload for _, payload in payloads]}
        state, output = advance_shard(config, shard, NEW_STATE, [cast("pd.DataFrame", frame)], batch_ms=0, batch=0)
        sink = [SinkRecord(record.topic, record.value, 0, 0, shard) for record in output.records]
        results.append((sink, state[5]))
    return results
