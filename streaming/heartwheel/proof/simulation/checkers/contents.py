"""P3: one id has one content, and a row names the batch and the shard that wrote it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.rows import WrittenRow, WrittenRows, content
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.sink import Row
from heartwheel.wire.partitioner import shard_of


def check_contents(
    plan: Plan, checkpoint: Checkpoint, rows: WrittenRows, unordered: Collection[str]
) -> Iterator[BrokenPromise]:
    """Return every row that contradicts another one, or the batch or shard that wrote it.

    Args:
        checkpoint: after the job has ended.
        unordered: groups of feeds whose verdicts may depend on the batches; they may contradict themselves.
    """
    first: dict[str, Row] = {}
    for one in rows.all:
        yield from _check_stamp(plan, checkpoint, one)
        known = first.setdefault(one.row.id, one.row)
        if one.row.group_id not in unordered and content(known) != content(one.row):
            yield BrokenPromise("P3", f"one id, two contents: {known} and {one.row}")


def _check_stamp(plan: Plan, checkpoint: Checkpoint, one: WrittenRow) -> Iterator[BrokenPromise]:
    row, written = one
    batch_ms = checkpoint.offsets[written.batch].batch_ms
    if row.detected_ms != batch_ms:
        yield BrokenPromise("P3", f"detected_ms is not the batch's timestamp {batch_ms}: {row}")
    if row.shard != shard_of(row.group_id, plan.shards) or row.shard != written.shard:
        yield BrokenPromise("P3", f"written by shard {written.shard}, which it does not belong to: {row}")
