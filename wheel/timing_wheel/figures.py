"""The figures of a wheel: counters since its creation, and the occupancy of its levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from timing_wheel.filing import Filing


@dataclass(frozen=True)
class WheelStats:
    """The cumulative counters of a wheel; a snapshot keeps them.

    Args:
        moves: entries that were filed again: re-armed to an earlier bucket, or cascaded when their bucket was flushed.
        fires: handles that `advance` has returned.
        flushes: buckets that were flushed.
        regressions: calls of `advance` with a clock that went back, which were ignored.
    """

    moves: int = 0
    fires: int = 0
    flushes: int = 0
    regressions: int = 0


@dataclass(frozen=True)
class LevelOccupancy:
    """The occupancy of one level.

    Args:
        level: 0 is the finest.
        tick_ms: width of one bucket, milliseconds.
        interval_ms: width of the whole level, milliseconds.
        slots_occupied: buckets with at least one handle.
        entries: handles that are filed on the level.
        slot_counts: handles per slot, one number for each bucket of the level; empty unless requested.
    """

    level: int
    tick_ms: int
    interval_ms: int
    slots_occupied: int
    entries: int
    slot_counts: tuple[int, ...] = ()


def occupancy_of(filing: Filing, *, slots: bool) -> list[LevelOccupancy]:
    """Return the occupancy of each level, up to the coarsest one with handles.

    Args:
        filing: the buckets.
        slots: whether to count the handles of each slot, too.
    """
    geometry = filing.geometry
    buckets = [bucket for bucket in filing.buckets.values() if bucket.live and bucket.level >= 0]
    counts = np.zeros((1 + max((bucket.level for bucket in buckets), default=0), geometry.wheel_size), np.int64)
    for bucket in buckets:
        counts[bucket.level, bucket.virtual_id % geometry.wheel_size] = bucket.live
    return [
        LevelOccupancy(
            level=level,
            tick_ms=geometry.spans[level] * geometry.tick_ms,
            interval_ms=geometry.spans[level] * geometry.tick_ms * geometry.wheel_size,
            slots_occupied=int(np.count_nonzero(row)),
            entries=int(row.sum()),
            slot_counts=tuple(row.tolist()) if slots else (),
        )
        for level, row in enumerate(counts)
    ]
