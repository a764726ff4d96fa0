"""The heartbeat topic: partitions whose leaders' clocks give records their append times.

Members are simulated first, so their records are known before the job runs; ticks are added while it runs. So a
partition is filled in the order of true time up to the time that was last asked for, and later records have no offset
yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.proof.log_builder import ProducedRecord
from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import Plan, PlannedOutage
from heartwheel.wire.partitioner import java_hash, partition_of


class Landed(NamedTuple):
    """A record, and the true time at which it was appended, ms."""

    landed_ms: int
    record: ProducedRecord


class _Sent(NamedTuple):
    """A record that a member sent.

    Args:
        landed_ms: when it is appended, true ms.
        cause: why the job must reject it, if so.
        idle: whether it only shows that time passes, like a tick.
    """

    landed_ms: int
    value: bytes | None
    cause: str
    idle: bool


class SimulatedTopic:
    """The heartbeat topic, with the end of each partition at any time.

    Args:
        plan: partitions, brokers, changes of leaders, outages, transactions.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        count = max(plan.partitions, plan.grown[1] if plan.grown else 0)
        self.partitions: list[list[Landed]] = [[] for _ in range(count)]
        self.garbage: dict[tuple[int, int], str] = {}
        """The cause for which a record must be rejected, by partition and offset."""
        self._sent: list[list[_Sent]] = [[] for _ in range(count)]
        self._filled = [0] * count
        self._members_end = [0] * count

    def count_at(self, true_ms: int) -> int:
        """Return the number of partitions at a time."""
        grown = self._plan.grown
        return grown[1] if grown is not None and grown[0] <= true_ms else self._plan.partitions

    def partition_of(self, group: GroupPlan, true_ms: int) -> int:
        """Return the partition of a group's records at a time; it changes when producers learn that the topic grew."""
        count = self.count_at(true_ms - group.metadata_age_ms)
        if group.partitioner == "java":
            return abs(java_hash(group.group_id)) % count
        return partition_of(group.group_id.encode(), count)

    def clock_ms(self, partition: int, true_ms: int) -> int:
        """Return the time of the clock of a partition's leader, epoch ms."""
        leader = 0
        for at, of, broker in self._plan.leader_changes:
            if of == partition and at <= true_ms:
                leader = broker
        return self._plan.brokers[leader].at(true_ms)

    def stamp_ms(self, partition: int, true_ms: int) -> int:
        """Return the append time of a record that is appended at a time, epoch ms; `UNTIMED_MS` if it has none."""
        untimed = any(
            each.partition in (-1, partition) and each.from_ms <= true_ms < each.to_ms for each in self._plan.untimed
        )
        return UNTIMED_MS if untimed else self.clock_ms(partition, true_ms)

    def outage_at(self, partition: int, true_ms: int) -> PlannedOutage | None:
        """Return the outage of a partition at a time; `None` if it can be written."""
        found = (outage for outage in self._plan.outages if outage.partition in (-1, partition))
        return next((outage for outage in found if outage.from_ms <= true_ms < outage.to_ms), None)

    def send(self, partition: int, value: bytes | None, true_ms: int, *, cause: str = "", idle: bool = False) -> int:
        """Send a record, and return its append time; if its partition cannot be written, that is when it can again.

        Args:
            true_ms: when it is sent; true time never goes back between calls.
            cause: why the job must reject it, if so.
            idle: whether it only shows that time passes, like a tick.
        """
        outage = self.outage_at(partition, true_ms)
        landed_ms = true_ms if outage is None else outage.to_ms
        self._sent[partition].append(_Sent(landed_ms, value, cause, idle))
        return self.clock_ms(partition, landed_ms)

    def append(self, partition: int, value: bytes | None, true_ms: int) -> None:
        """Append a record after all that were appended by then."""
        self._fill(partition, true_ms)
        log = self.partitions[partition]
        log.append(Landed(true_ms, ProducedRecord(self.stamp_ms(partition, true_ms), value, partition, len(log))))

    def ends_at(self, true_ms: int) -> dict[int, int]:
        """Return the end of a committed read in each partition; true time must not go back between calls."""
        ends = {}
        for partition in range(self.count_at(true_ms)):
            self._fill(partition, true_ms)
            ends[partition] = bisect_right(self.partitions[partition], true_ms, key=_landed_ms)
        for held in self._plan.transactions:
            if held.partition in ends and held.from_ms <= true_ms < held.to_ms:
                stable = bisect_left(self.partitions[held.partition], held.from_ms, key=_landed_ms)
                ends[held.partition] = min(ends[held.partition], stable)
        return ends

    def is_left(self, read: dict[int, int]) -> bool:
        """Return whether there are unread records other than ticks and idle ones."""
        return any(end > read.get(partition, 0) for partition, end in enumerate(self._members_end))

    def records(self, starts: dict[int, int], ends: dict[int, int]) -> list[list[ProducedRecord]]:
        """Return the records of a range of offsets in each partition; without a start, from its beginning."""
        return [
            [landed.record for landed in self.partitions[partition][starts.get(partition, 0) : end]]
            for partition, end in ends.items()
        ]

    def _fill(self, partition: int, true_ms: int) -> None:
        """Append the sent records that are due by a time."""
        log, sent = self.partitions[partition], self._sent[partition]
        while self._filled[partition] < len(sent) and sent[self._filled[partition]].landed_ms <= true_ms:
            landed_ms, value, cause, idle = sent[self._filled[partition]]
            if cause:
                self.garbage[partition, len(log)] = cause
            log.append(
                Landed(landed_ms, ProducedRecord(self.stamp_ms(partition, landed_ms), value, partition, len(log)))
            )
            self._filled[partition] += 1
            if not idle:
                self._members_end[partition] = len(log)


def _landed_ms(landed: Landed) -> int:
    return landed.landed_ms
