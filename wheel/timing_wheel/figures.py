"""What a wheel tells about itself: counters since it was made, and how full its levels are."""

from __future__ import annotations

from dataclasses import dataclass


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
