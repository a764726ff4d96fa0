"""What a shard knows of the time of every partition, kept in its state from batch to batch.

The *watermark* of a partition is the effective time of the newest record read from it, ticks and heartbeats alike: any
record proves that all before it has been read. With a dead ticker busy partitions go on and quiet ones stand still.
While a gap may still turn out to be an outage, the partition is *decided* only up to the gap's begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.log_time.outage import (
    RESUME_MAX_MS,
    Gap,
    Outage,
    TickSeen,
    is_outage,
    kind_of,
    may_be_outage,
)
from heartwheel.log_time.reading import Reading

Ints = NDArray[np.int64]

UNKNOWN_MS: Final = -1
"""The time of a partition that nothing was read from."""

MOVED_MS_MAX: Final = 600_000
"""How long after a topic has grown a group may still move to another partition, ms: producers look at the topic anew
every five minutes (`metadata.max.age.ms`). A group that writes elsewhere than its id says for longer is one whose
producer chooses partitions in another way, and waits for no other partition than its own."""


class PartitionTime(msgspec.Struct, array_like=True):
    """What is known of the time of one partition.

    Args:
        watermark_ms: effective time of the newest record read, epoch ms.
        last_append_ms: append time of that record itself, epoch ms.
        tick: the newest tick of a known run.
        gap: a gap that is not decided yet.
    """

    watermark_ms: int
    last_append_ms: int
    tick: TickSeen | None = None
    gap: Gap | None = None

    @property
    def decided_ms(self) -> int:
        """Up to where the partition is decided, epoch ms."""
        return self.watermark_ms if self.gap is None else self.gap.before_ms


class Postponed(msgspec.Struct, frozen=True, array_like=True):
    """An outage that has to wait, in some groups, for records that come before it and are still unread.

    Args:
        outage: which.
        group_ids: those groups.
    """

    outage: Outage
    group_ids: list[str] = []


class LogTime(msgspec.Struct):
    """The time of every partition of a topic.

    Args:
        postponed: outages that wait in some groups.
        partitions: what is known of each that something was read from.
        count: how many partitions the topic has, as far as is known; it only rises.
        grown_ms: when the newest of them was first heard of, epoch ms.
    """

    partitions: dict[int, PartitionTime] = {}
    count: int = 0
    grown_ms: int = UNKNOWN_MS
    postponed: list[Postponed] = []

    def read(self, readings: Iterable[Reading], *, outage_min_ms: int) -> list[Outage]:
        """Take in what a batch has read.

        Args:
            readings: of all tasks.
            outage_min_ms: shortest gap that may be an outage, ms.

        Returns:
            The outages that are certain now, by their end, then by partition.
        """
        outages: list[Outage] = []
        for reading in sorted(readings, key=lambda each: (each.partition, each.first_offset)):
            self._count(reading)
            before = self.partitions.get(reading.partition)
            gaps = _gaps(before, reading)
            after = self.partitions[reading.partition] = PartitionTime(
                max(reading.last_ms, before.watermark_ms if before else UNKNOWN_MS),
                reading.last_append_ms,
                reading.last_tick or (before.tick if before else None),
            )
            for gap in gaps:
                if not may_be_outage(gap, outage_min_ms=outage_min_ms):
                    continue
                if gap.tick_after is None and after.watermark_ms - gap.after_ms <= RESUME_MAX_MS:
                    after.gap = gap
                elif is_outage(gap):
                    kind = kind_of(gap, newest=reading.last_tick)
                    outages.append(Outage(reading.partition, gap.before_ms, gap.after_ms, kind))
        return sorted(outages, key=lambda outage: (outage.after_ms, outage.partition))

    def _count(self, reading: Reading) -> None:
        count = max(self.count, reading.partition + 1, reading.partitions)
        if count > self.count:
            self.count = count
            self.grown_ms = max(self.grown_ms, reading.last_ms)
        elif reading.partition not in self.partitions:
            self.grown_ms = max(self.grown_ms, reading.first_ms)

    def watermarks(self) -> Ints:
        """Return the watermark of every partition, int64 (count,), epoch ms, `UNKNOWN_MS` where nothing was read."""
        return self._column({number: part.watermark_ms for number, part in self.partitions.items()})

    def decided(self) -> Ints:
        """Return up to where every partition is decided, int64 (count,), epoch ms, `UNKNOWN_MS` likewise."""
        return self._column({number: part.decided_ms for number, part in self.partitions.items()})

    def undecided(self) -> int:
        """Count the partitions that wait for a tick to tell what a gap was."""
        return sum(part.gap is not None for part in self.partitions.values())

    def _column(self, values: dict[int, int]) -> Ints:
        column = np.full(self.count, UNKNOWN_MS, np.int64)
        for number, value in values.items():
            column[number] = value
        return column


def _gaps(before: PartitionTime | None, reading: Reading) -> list[Gap]:
    """List what may be gaps in a partition, in the order of the log: an open one, the one at the seam, those inside."""
    if before is None:
        return list(reading.gaps)
    floor = before.watermark_ms
    gaps = [] if before.gap is None else [msgspec.structs.replace(before.gap, tick_after=reading.first_tick)]
    if reading.first_ms > floor:
        gaps.append(Gap(floor, before.last_append_ms, reading.first_ms, before.tick, reading.first_tick))
    gaps += (
        msgspec.structs.replace(gap, before_ms=max(gap.before_ms, floor), tick_before=gap.tick_before or before.tick)
        for gap in reading.gaps
    )
    return gaps
