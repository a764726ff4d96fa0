"""The heartbeat topic: partitions with leaders whose clocks stamp what they append."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from heartwheel.coordinator.partition import java_hash
from heartwheel.simulation.plan import Plan
from heartwheel.testing import Record


class Landed(NamedTuple):
    """Hold a record and the true time at which it was in the log, ms."""

    landed_ms: int
    record: Record


class Topic:
    """Append records, and tell how far each partition reached at any moment.

    Args:
        plan: partitions, brokers, changes of leaders.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.partitions: list[list[Landed]] = [[] for _ in range(self.count_at(plan.feed_ms))]

    def count_at(self, true_ms: int) -> int:
        """Tell how many partitions there are at a moment."""
        grown = self._plan.grown
        return grown[1] if grown is not None and grown[0] <= true_ms else self._plan.partitions

    def partition_of(self, group_id: str, true_ms: int) -> int:
        """Name the partition that a key goes to at a moment; it changes as the topic grows."""
        return abs(java_hash(group_id)) % self.count_at(true_ms)

    def clock_ms(self, partition: int, true_ms: int) -> int:
        """Tell what the leader of a partition would stamp at a moment, epoch ms."""
        leader = 0
        for at, of, broker in self._plan.leader_changes:
            if of == partition and at <= true_ms:
                leader = broker
        return self._plan.brokers[leader].at(true_ms)

    def append(self, partition: int, value: bytes | None, true_ms: int) -> Record:
        """Append a record; true time never goes back between calls."""
        log = self.partitions[partition]
        record = Record(self.clock_ms(partition, true_ms), value, partition, len(log))
        log.append(Landed(true_ms, record))
        return record

    def ends_at(self, true_ms: int) -> dict[int, int]:
        """Tell the end offset of each partition that there is at a moment."""
        return {
            partition: bisect_right(self.partitions[partition], true_ms, key=_landed_ms)
            for partition in range(self.count_at(true_ms))
        }

    def records(self, starts: dict[int, int], ends: dict[int, int]) -> list[list[Record]]:
        """Read ranges of offsets, partition by partition; one without a start is read from its beginning."""
        return [
            [landed.record for landed in self.partitions[partition][starts.get(partition, 0) : end]]
            for partition, end in ends.items()
        ]


def _landed_ms(landed: Landed) -> int:
    return landed.landed_ms
