"""P1 and P2 of groups that feeds relay: their timers run exactly as far as the feeds' marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heartwheel.proof.simulation.checkers.fed_log import FedLog
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.rows import WrittenRow
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.wire.verdict_rows import ExpirationRow
from heartwheel.wire.verdicts import ExpiryReason

DECIDED_BY_RECORDS: Final = frozenset({ExpiryReason.POLL_TIMEOUT, ExpiryReason.WORKER_FAILED})
"""Expirations by a record, not by a timer: the verdict has the time of the record."""


def check_marks(
    plan: Plan, fed: FedLog, group_id: str, rows: list[WrittenRow], *, in_order: bool
) -> Iterator[BrokenPromise]:
    """Return every expiration of a group that was written before the marks allowed it, or a batch too late.

    Args:
        fed: the records of feeds.
        in_order: whether all its verdicts are promised; if not, only that none came before the marks.
    """
    prompt = in_order and plan.limits.verdicts_max > 1
    for row, written in rows:
        if not isinstance(row, ExpirationRow) or row.reason in DECIDED_BY_RECORDS:
            continue
        reach = fed.reach(group_id, written.batch)
        # A group is also put aside where it depended on the batches whether the job forgot it together with its feeds.
        at_most_ms = reach.at_most if in_order else reach.forgotten
        if row.deadline_ms > at_most_ms:
            yield BrokenPromise("P1", f"the feeds' marks had come to {at_most_ms} when it was written: {row}")
        before_ms = fed.reach(group_id, written.batch - 1).surely
        if prompt and row.deadline_ms <= before_ms // plan.tick_ms * plan.tick_ms:
            yield BrokenPromise("P2", f"was due by marks at {before_ms}, which the batch before had read: {row}")
