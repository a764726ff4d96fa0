"""P6: broken records and records over a limit are on the rejects topic with their cause; no others are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.rows import WrittenRows
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.events import RejectCause

_BY_LIMIT: Final = {RejectCause.SHARD_FULL, RejectCause.GROUP_FULL, RejectCause.INVALID_SESSION_TIMEOUT}


def check_rejects(topic: SimulatedTopic, checkpoint: Checkpoint, rows: WrittenRows) -> Iterator[BrokenPromise]:
    """Return every broken record that was not rejected by its cause, and every reject of a record that is not broken.

    Args:
        topic: the heartbeats, with the broken records.
        checkpoint: after the job has ended.
    """
    read, starts = checkpoint.read, checkpoint.offsets[0].starts
    broken = {
        (partition, offset, cause)
        for (partition, offset), cause in topic.garbage.items()
        if starts.get(partition, 0) <= offset < read.get(partition, 0)
    }
    named = {
        (reject.partition, reject.offset, reject.cause) for reject, _ in rows.rejects if reject.cause not in _BY_LIMIT
    }
    for reject, _ in rows.rejects:
        if reject.value_base64 is None and reject.cause != RejectCause.TOMBSTONE:
            yield BrokenPromise("P6", f"a reject without its record: {reject}")
    for entry in sorted(broken ^ named):
        yield BrokenPromise("P6", f"{'missing from' if entry in broken else 'wrongly on'} the rejects topic: {entry}")
