"""Stray groups: groups in a partition that the job could not know, so that the order of their records is not promised.

These are exactly the exceptions that docs/guarantees.md makes for partitions. Every promise holds for other groups in
several partitions. Even in a group that is stray only because of its producers, no member expires if the log has a
heartbeat of it in time.
"""

from __future__ import annotations

import enum

from heartwheel.proof.simulation.checkers.read_log import ReadLog
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.wire.partitioner import partition_of


class UnorderedReason(enum.StrEnum):
    """Why the order of a group's records is not promised."""

    PARTITIONER = "of another partitioner"
    """Its producers choose partitions in another way than Kafka's own."""
    GREW_BEFORE = "grew before the first start"
    """The topic grew in the backlog of a new checkpoint, which does not know how many partitions there were."""
    KNOWN_LATE = "known too late"
    """When the job learned of a record's partition, it had decided the group beyond the record's time."""


class Strays:
    """The groups of a history whose records have no promised order.

    Args:
        log: the log up to where the job has read it.
        checkpoint: the checkpoint after the job has ended.

    Attributes:
        known_since: the first batch that knew of the topic's growth.
    """

    def __init__(self, plan: Plan, log: ReadLog, checkpoint: Checkpoint) -> None:
        self._plan = plan
        self._log = log
        self._counts = [plan.partitions, *(plan.grown[1:] if plan.grown else ())]
        self._planned = checkpoint.offsets
        self.known_since = self._first_batch_that_knew(checkpoint) if plan.grown else len(checkpoint.offsets)

    def why(self, group_id: str) -> UnorderedReason | None:
        """Return why a group is stray; `None` if it is not."""
        parts = {entry.record.partition for entry in self._log.entries.get(group_id, ())}
        homes = [partition_of(group_id.encode(), count) for count in self._counts]
        if len(parts) < 2:
            return None
        if not parts <= set(homes):
            return UnorderedReason.KNOWN_LATE if self._is_known_late(group_id, homes) else UnorderedReason.PARTITIONER
        if self._plan.grown is not None and self._plan.grown[0] <= self._plan.start_ms:
            return UnorderedReason.GREW_BEFORE
        return UnorderedReason.KNOWN_LATE if self._is_known_late(group_id, homes) else None

    def _is_known_late(self, group_id: str, homes: list[int]) -> bool:
        """Return whether a batch has decided a group beyond the time of a record that it could not wait for.

        After a batch the job waits for the partitions in which it has read records of the group, and for those that the
        group's id hashes to with the partition counts that it knows. It has decided the group up to the least time of
        all of these.
        """
        unread = self._log.entries[group_id]
        met: set[int] = set()
        for batch, planned in enumerate(self._planned):
            met |= {e.record.partition for e in unread if e.record.offset < planned.ends.get(e.record.partition, 0)}
            unread = [e for e in unread if e.record.offset >= planned.ends.get(e.record.partition, 0)]
            known = met | set(homes if batch >= self.known_since else homes[:1])
            decided_ms = min(self._log.watermark_ms(part, planned.ends.get(part, 0)) for part in known)
            if met and any(e.time_ms <= decided_ms for e in unread if e.record.partition not in known):
                return True
        return False

    def _first_batch_that_knew(self, checkpoint: Checkpoint) -> int:
        """Return the first batch that knew of the growth: by its query, or by a record in a new partition."""
        old, new = self._counts
        by_query = checkpoint.counts.get(new, len(checkpoint.offsets))
        for batch, planned in enumerate(checkpoint.offsets[:by_query]):
            if any(partition >= old and end for partition, end in planned.ends.items()):
                return batch
        return by_query
