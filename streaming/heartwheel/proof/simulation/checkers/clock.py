"""P1 and P2 by the clock in the state: it never goes back, and what is due by it is written within one more batch."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import pairwise

from heartwheel.proof.simulation.checkers.marks import DECIDED_BY_RECORDS
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.read_log import ReadLog
from heartwheel.proof.simulation.checkers.rows import WrittenRow, WrittenRows
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint, Planned
from heartwheel.wire.verdict_rows import ExpirationRow


def check_clocks(plan: Plan, checkpoint: Checkpoint) -> Iterator[BrokenPromise]:
    """Return every batch that set a shard's clock back, except those that read a partition for the first time."""
    for shard in range(plan.shards):
        clocks = [checkpoint.state_at(batch, shard)[2] for batch in range(checkpoint.commits + 1)]
        for batch, (one, other) in enumerate(pairwise(clocks)):
            planned = checkpoint.offsets[batch]
            if -1 < other < one and not any(_is_new(planned, partition) for partition in planned.ends):
                yield BrokenPromise(
                    "P1", f"the clock of shard {shard} went back from {one} to {other} in batch {batch}"
                )


def check_bound(
    plan: Plan, log: ReadLog, checkpoint: Checkpoint, rows: WrittenRows, fed: Container[str]
) -> Iterator[BrokenPromise]:
    """Return every expiration that was due by the clock of the batch before the one that wrote it.

    A verdict that a record decides has no deadline, because the record may be from the newest millisecond that was read
    before. A group in a partition that is read for the first time is not late, because the clock of its shard was that
    of the other partitions.

    Args:
        checkpoint: after the job has ended.
        fed: the groups that feeds relay; their time is that of the feeds' marks.
    """
    if plan.limits.verdicts_max == 1:
        return  # such a job leaves verdicts to later batches
    for group_id, written in rows.first.items():
        if group_id in fed:
            continue
        parts = log.partitions_of(group_id)
        for one in written:
            if not any(_is_new(checkpoint.offsets[one.written.batch], part) for part in parts):
                yield from _check_lateness(plan, checkpoint, one)


def _check_lateness(plan: Plan, checkpoint: Checkpoint, one: WrittenRow) -> Iterator[BrokenPromise]:
    row, written = one
    before_ms = checkpoint.state_at(written.batch, written.shard)[2]
    due_ms = before_ms // plan.tick_ms * plan.tick_ms
    if isinstance(row, ExpirationRow) and row.reason not in DECIDED_BY_RECORDS and row.deadline_ms <= due_ms:
        yield BrokenPromise("P2", f"was due at clock {before_ms} of the batch before: {row}")


def _is_new(planned: Planned, partition: int) -> bool:
    """Return whether a batch is the first that reads from a partition."""
    return bool(planned.ends.get(partition)) and not planned.starts.get(partition)
