"""The arithmetic of a hierarchical timing wheel, without any state.

Time is counted in **ticks** of the lowest level. A bucket of level `k` spans `wheel_size ** k` ticks, and its **virtual
id** is the number of such spans since time 0; so its first tick, at which it is flushed, is `virtual id * span`. The
levels are those of Kafka's `TimingWheel`: each covers `wheel_size` spans, and a deadline goes to the lowest level that
covers it.

One rule differs from Kafka. Kafka files a timer under the floor of its tick and so fires it up to one tick early, which
is invisible at its tick of 1 ms. Here `Geometry.ticks_of` rounds **up**, and it is the only place that rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from timing_wheel.columns import TIME_MS_MAX, Ints

IntsT = TypeVar("IntsT", int, Ints)

NOT_FILED: Final = -1
"""Slot of a handle that is in no bucket."""

OVERDUE_SLOT: Final = 0
"""Slot of the bucket before all levels, for handles that were armed at or after their deadline."""

SLOTS_MAX: Final = 2**15 - 1
"""Most slots of one wheel: a slot is an int16, which NumPy sorts by radix."""


@dataclass(frozen=True)
class Geometry:
    """The mapping of deadlines to ticks, ticks to buckets, and buckets to slots.

    Args:
        tick_ms: width of a bucket of the lowest level, milliseconds; the most that a verdict can be late.
        wheel_size: buckets per level.

    Raises:
        ValueError: the tick is less than 1 ms, the wheel has fewer than 2 or far too many buckets.
    """

    tick_ms: int
    wheel_size: int
    spans: tuple[int, ...] = field(init=False, repr=False)
    """Ticks that one bucket spans, level by level, until every accepted deadline is covered."""

    def __post_init__(self) -> None:
        if not 1 <= self.tick_ms <= TIME_MS_MAX:
            raise ValueError(f"tick_ms is {self.tick_ms}; it must be in 1..{TIME_MS_MAX}")
        if self.wheel_size < 2:
            raise ValueError(f"wheel_size is {self.wheel_size}; a level needs at least 2 buckets")
        spans = [1]
        while spans[-1] * self.wheel_size <= TIME_MS_MAX // self.tick_ms + 1:
            spans.append(spans[-1] * self.wheel_size)
        if self.wheel_size * len(spans) >= SLOTS_MAX:
            raise ValueError(f"wheel_size is {self.wheel_size}, which makes more than {SLOTS_MAX} slots; take fewer")
        object.__setattr__(self, "spans", tuple(spans))

    def ticks_of(self, deadlines_ms: IntsT) -> IntsT:
        """Round deadlines up to whole ticks. Only this method rounds, so that no handle is ever early.

        Args:
            deadlines_ms: a column of deadlines, or a single one, milliseconds.

        Returns:
            For each deadline the first tick that begins at or after it.
        """
        return (deadlines_ms + (self.tick_ms - 1)) // self.tick_ms

    def limits(self, now: int) -> Iterator[int]:
        """Yield for each level the first tick that it does not cover while the clock is at tick `now`."""
        return (now - now % span + span * self.wheel_size for span in self.spans)

    def locate(self, ticks: Ints, now: int) -> tuple[Ints, Ints]:
        """Return the bucket of each tick, on the lowest level that covers it.

        Args:
            ticks: the ticks, each after `now`; for others the result is in range, but has no meaning.
            now: the tick of the clock.

        Returns:
            Level and virtual id of the bucket, one of each per tick.
        """
        levels = np.zeros(len(ticks), np.int64)
        last = int(ticks.max(initial=now))
        # Few levels are in use at any time, so adding up comparisons beats a binary search.
        for limit in self.limits(now):
            if last < limit:
                break
            levels += ticks >= limit
        return levels, ticks // np.array(self.spans)[levels]

    def locate_one(self, tick: int, now: int) -> tuple[int, int]:
        """Return the bucket of one tick, as `locate` does for a column."""
        level = next(level for level, limit in enumerate(self.limits(now)) if tick < limit)
        return level, tick // self.spans[level]

    def slots_of(self, levels: Ints, virtual_ids: Ints) -> Ints:
        """Return the slots of buckets; slot 0 is the overdue one.

        A level covers `wheel_size` consecutive virtual ids, so buckets that exist at the same time never share a slot.
        """
        return 1 + levels * self.wheel_size + virtual_ids % self.wheel_size

    def slot_of(self, level: int, virtual_id: int) -> int:
        """Return the slot of one bucket, as `slots_of` does for a column."""
        return 1 + level * self.wheel_size + virtual_id % self.wheel_size

    def level_of(self, slot: int) -> int:
        """Return the level of a slot; the overdue slot is at level -1."""
        return (slot - 1) // self.wheel_size if slot != OVERDUE_SLOT else -1
