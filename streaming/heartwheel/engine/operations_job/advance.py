"""One batch of one shard of operations: state and packets in, outcomes and new state out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from heartwheel.engine.operations import Ended, OperationLimits, OperationShard, Refused, outcome_row
from heartwheel.engine.operations_job.packer import decode_packet
from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.state.output import Output, OutputRecord, ProgressFigures, json_text, reject_record
from heartwheel.engine.runtime.state.schema import STATE_VERSION, StateRow
from heartwheel.engine.runtime.state.state_function import require_known_version, split
from heartwheel.wire.rejects import Reject, make_reject


@dataclass(frozen=True, kw_only=True)
class OperationsConfig(StreamConfig):
    """The configuration of one run of the job, beside what every job needs.

    Args:
        limits: what a shard may hold, and how long it remembers.
    """

    limits: OperationLimits = field(default_factory=OperationLimits)


def advance_operations(
    config: OperationsConfig,
    shard_index: int,
    before: StateRow,
    frames: Iterable[pd.DataFrame],
    *,
    batch_ms: int,
    batch: int | None = None,
) -> tuple[StateRow, Output]:
    """Advance one shard by one batch, by the time that the log proves (`heartwheel.engine.operations.log`).

    The state row is the heartbeat job's: `members` counts the operations that wait, `groups` those that are remembered.

    Args:
        frames: packets and rejects.
        batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
        batch: its number, if Spark says it.

    Raises:
        StateVersionError: another release wrote the state row.
        StateBlobError: the state's blob cannot be read.
    """
    require_known_version(before, shard_index)
    payloads, rejects, _, _ = split(frames)
    shard = OperationShard(config.limits, clock_ms=before.clock_ms, blob=before.blob)
    packets = [decode_packet(payload) for payload in payloads]
    result = shard.apply(packets, partitions=max(config.counts_in(batch), default=0))
    rejects += (
        _refused(config, refused)
        for refused in result.refused
        if not refused.everywhere or refused.entry.partition % config.shards == shard_index
    )
    records = [_outcome(ended, shard_index, batch_ms) for ended in result.ended]
    records += map(reject_record, rejects)
    counts = result.counts
    figures = ProgressFigures(
        members=shard.waiting_count,
        groups=shard.remembered_count,
        records=counts["records"],
        expired=counts["expired"],
        triggers=counts["completed"],
        rejected=len(rejects),
        behind_ms=max(0, batch_ms - shard.clock_ms) if shard.clock_ms >= 0 else 0,
    )
    row = StateRow(
        STATE_VERSION,
        max(before.last_trigger_ms, batch_ms),
        shard.clock_ms,
        shard.waiting_count,
        shard.remembered_count,
        shard.encode(),
    )
    return row, Output(records, figures)


def _outcome(ended: Ended, shard_index: int, batch_ms: int) -> OutputRecord:
    row = outcome_row(ended, shard=shard_index, detected_ms=batch_ms)
    kind = f"heartwheel.operation.{row.outcome}.v1"
    return OutputRecord("outcomes", row.operation_id, json_text(row), row.id, kind, row.time_ms)


def _refused(config: OperationsConfig, refused: Refused) -> Reject:
    return make_reject(
        topic=config.source,
        partition=refused.entry.partition,
        offset=refused.entry.offset,
        append_ms=refused.entry.time_ms,
        cause=refused.cause.value,
        detail=refused.detail,
        key=None,
        value=refused.entry.value,
    )
