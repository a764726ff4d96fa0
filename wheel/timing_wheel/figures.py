"""What a wheel tells about itself: counters since it was made, and how full its levels are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from timing_wheel.filing import Filing


@dataclass(frozen=True)
class WheelStats:
    """Hold the cumulative counters of a wheel; a snapshot carries them on.

    Args:
        moves: entries that were filed again: re-armed to an earlier bucket, or cascaded when theirs was flushed.
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
    """Hold how full one level is.

    Args:
        level: 0 is the finest.
        tick_ms: width of one bucket, milliseconds.
        interval_ms: width of the whole level, milliseconds.
        slots_occupied: buckets that hold at least one handle.
        entries: handles that are filed on the level.
        slot_counts: handles a slot, as many as the wheel has buckets a level; empty unless asked for.
    """

    level: int
    tick_ms: int
    interval_ms: int
    slots_occupied: int
    entries: int
    slot_counts: tuple[int, ...] = ()


def occupancy_of(filing: Filing, *, slots: bool) -> list[LevelOccupancy]:
    """Tell how full each level is, up to the coarsest that holds anything.

    Args:
        filing: the buckets.
        slots: also count the handles of each slot.
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
