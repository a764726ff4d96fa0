"""One batch of one shard of operations: state and packets in, outcomes and new state out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from heartwheel.operations import Ended, OperationLimits, OperationShard, Refused, outcome_row
from heartwheel.operations_job.packer import decode_packet
from heartwheel.spark.job_config import StreamConfig
from heartwheel.spark.schema import STATE_VERSION, OutputRow, StateRow
from heartwheel.spark.state_function import json_text, reject_row, require_known_version, split
from heartwheel.wire.rejects import Reject, make_reject

CATCH_UP_SLACK_MS: Final = 1_000
"""How far the frontier stays behind what was read while catching up, beside the skew allowance.

The end offsets of the partitions are not fetched at one instant; what lands between is read when the job is live.
"""


@dataclass(frozen=True, kw_only=True)
class OperationsConfig(StreamConfig):
    """Hold the configuration of one run of the job, beside what every job needs.

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
    held: bool,
) -> tuple[StateRow, pd.DataFrame]:
    """Advance one shard by one batch, by the clock rule of `heartwheel.spark.state_function.advance_shard`.

    The state row is the heartbeat job's: `members` counts the operations that wait, `groups` those that are remembered.

    Args:
        config: the job's.
        shard_index: which shard.
        before: the state row.
        frames: packets, rejects and ticks.
        batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
        held: whether the job catches up: then the frontier follows from what was read.

    Raises:
        StateVersionError: a newer release wrote the state row.
        StateBlobError: the state's blob can not be read.
    """
    require_known_version(before, shard_index)
    last_trigger_ms = before.last_trigger_ms
    payloads, rejects = split(frames)
    shard = OperationShard(config.limits, clock_ms=before.clock_ms, blob=before.blob)
    packets = [decode_packet(payload) for payload in payloads]
    if held:
        slack_ms = config.skew_allowance_ms + CATCH_UP_SLACK_MS
        result = shard.apply(packets, None, slack_ms=slack_ms)
    else:
        # In the first live batch of a checkpoint nothing is known yet of what lies between its offsets and its time.
        live_ms = last_trigger_ms - config.skew_allowance_ms if last_trigger_ms >= 0 else shard.clock_ms
        result = shard.apply(packets, live_ms)
    rejects += (
        _refused(config, refused)
        for refused in result.refused
        if not refused.everywhere or refused.entry.partition % config.shards == shard_index
    )
    rows = [_outcome(ended, shard_index, batch_ms) for ended in result.ended]
    rows += map(reject_row, rejects)
    counts = result.counts
    rows.append(
        OutputRow(
            *(None, "", "", "", "", batch_ms),
            members=shard.waiting_count,
            groups=shard.remembered_count,
            records=counts["records"],
            expired=counts["expired"],
            triggers=counts["completed"],
            rejected=len(rejects),
            held=int(held),
        )
    )
    row = StateRow(
        STATE_VERSION,
        last_trigger_ms if held else max(last_trigger_ms, batch_ms),
        shard.clock_ms,
        shard.waiting_count,
        shard.remembered_count,
        shard.encode(),
    )
    return row, pd.DataFrame(rows, columns=list(OutputRow._fields))


def _outcome(ended: Ended, shard_index: int, batch_ms: int) -> OutputRow:
    row = outcome_row(ended, shard=shard_index, detected_ms=batch_ms)
    kind = f"heartwheel.operation.{row.outcome}.v1"
    return OutputRow("outcomes", row.operation_id, json_text(row), row.id, kind, row.time_ms)


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
