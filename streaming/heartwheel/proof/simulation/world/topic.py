"""The heartbeat topic: partitions with leaders whose clocks stamp what they append.

Members are simulated first, so what they sent is known before the job runs; ticks come as it runs. So a partition is
filled in the order of true time as far as somebody looks at it, and what stands behind that has no offset yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.proof.simulation.plan.groups import GroupPlan
from heartwheel.proof.simulation.plan.parameters import Plan, PlannedOutage
from heartwheel.proof.testing import ProducedRecord
from heartwheel.wire.partitioner import java_hash, partition_of


class Landed(NamedTuple):
    """A record, and the true time at which it was in the log, ms."""

    landed_ms: int
    record: ProducedRecord


class _Sent(NamedTuple):
    """A record that a member sent.

    Args:
        landed_ms: when it lands, true ms.
        value: what it says.
        cause: why it is broken, if it is.
        idle: whether it is no more than a tick is: a sign that time passes.
    """

    landed_ms: int
    value: bytes | None
    cause: str
    idle: bool


class SimulatedTopic:
    """Append records, and tell how far each partition reached at any moment.

    Args:
        plan: partitions, brokers, changes of leaders, outages, transactions.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        count = max(plan.partitions, plan.grown[1] if plan.grown else 0)
        self.partitions: list[list[Landed]] = [[] for _ in range(count)]
        self.garbage: dict[tuple[int, int], str] = {}
        """Which records are broken, by partition and offset, and the cause by which they must be rejected."""
        self._sent: list[list[_Sent]] = [[] for _ in range(count)]
        self._filled = [0] * count
        self._members_end = [0] * count

    def count_at(self, true_ms: int) -> int:
        """Return how many partitions there are at a moment."""
        grown = self._plan.grown
        return grown[1] if grown is not None and grown[0] <= true_ms else self._plan.partitions

    def partition_of(self, group: GroupPlan, true_ms: int) -> int:
        """Return the partition that a group's records go to at a moment; it changes once producers know of more."""
        count = self.count_at(true_ms - group.metadata_age_ms)
        if group.partitioner == "java":
            return abs(java_hash(group.group_id)) % count
        return partition_of(group.group_id.encode(), count)

    def clock_ms(self, partition: int, true_ms: int) -> int:
        """Return what the leader of a partition would stamp at a moment, epoch ms."""
        leader = 0
        for at, of, broker in self._plan.leader_changes:
            if of == partition and at <= true_ms:
                leader = broker
        return self._plan.brokers[leader].at(true_ms)

    def stamp_ms(self, partition: int, true_ms: int) -> int:
        """Return the append time of a record that lands at a moment, epoch ms; `UNTIMED_MS` if it has none."""
        untimed = any(
            each.partition in (-1, partition) and each.from_ms <= true_ms < each.to_ms for each in self._plan.untimed
        )
        return UNTIMED_MS if untimed else self.clock_ms(partition, true_ms)

    def outage_at(self, partition: int, true_ms: int) -> PlannedOutage | None:
        """Return whether a partition cannot be written at a moment."""
        found = (outage for outage in self._plan.outages if outage.partition in (-1, partition))
        return next((outage for outage in found if outage.from_ms <= true_ms < outage.to_ms), None)

    def send(self, partition: int, value: bytes | None, true_ms: int, *, cause: str = "", idle: bool = False) -> int:
        """Send a record; while its partition cannot be written it lands as soon as it can. Returns its append time.

        Args:
            partition: where.
            value: what it says.
            true_ms: when; true time never goes back between calls.
            cause: why it is broken, if it is.
            idle: whether it is no more than a tick is: a sign that time passes.
        """
        outage = self.outage_at(partition, true_ms)
        landed_ms = true_ms if outage is None else outage.to_ms
        self._sent[partition].append(_Sent(landed_ms, value, cause, idle))
        return self.clock_ms(partition, landed_ms)

    def append(self, partition: int, value: bytes | None, true_ms: int) -> None:
        """Append a record behind all that has landed by then."""
        self._fill(partition, true_ms)
        log = self.partitions[partition]
        log.append(Landed(true_ms, ProducedRecord(self.stamp_ms(partition, true_ms), value, partition, len(log))))

    def ends_at(self, true_ms: int) -> dict[int, int]:
        """Return up to where a committed read comes in each partition that there is; no call may go back in time."""
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
        """Return whether any record has landed behind what was read of each partition, but ticks and their like."""
        return any(end > read.get(partition, 0) for partition, end in enumerate(self._members_end))

    def records(self, starts: dict[int, int], ends: dict[int, int]) -> list[list[ProducedRecord]]:
        """Return ranges of offsets, partition by partition; one without a start is read from its beginning."""
        return [
            [landed.record for landed in self.partitions[partition][starts.get(partition, 0) : end]]
            for partition, end in ends.items()
        ]

    def _fill(self, partition: int, true_ms: int) -> None:
        """Append what has landed by a moment."""
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
