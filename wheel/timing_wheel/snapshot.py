"""A wheel as plain arrays, which a codec stores, and from which a wheel is restored by slicing."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from timing_wheel.bucket import Bucket, Entries
from timing_wheel.columns import TIME_MS_MAX, Ints
from timing_wheel.figures import WheelStats
from timing_wheel.filing import BEFORE_ALL_TIME, Filing
from timing_wheel.geometry import NOT_FILED, OVERDUE_SLOT, Geometry


class SnapshotError(ValueError):
    """A snapshot contradicts itself, so that no wheel can be restored from it."""


@dataclass(frozen=True, eq=False)
class WheelSnapshot:
    """The whole state of a wheel, as integers and plain arrays.

    A program that keeps the deadlines in its own column, indexed by handle, need not store them twice: it can build the
    snapshot with `deadlines_ms=column[handles]`.

    Args:
        tick_ms: width of a bucket of the lowest level, milliseconds.
        wheel_size: buckets per level.
        clock_ms: the last clock the wheel was advanced to, milliseconds.
        handles: filed handles, bucket after bucket.
        deadlines_ms: their true deadlines, milliseconds, in the order of `handles`.
        bucket_levels: level of each bucket, -1 for the overdue one.
        bucket_virtual_ids: number of each bucket since time 0 on its level.
        bucket_counts: the number of `handles` in each bucket.
        stats: the counters so far.
    """

    tick_ms: int
    wheel_size: int
    clock_ms: int
    handles: Entries
    deadlines_ms: Ints
    bucket_levels: NDArray[np.int8]
    bucket_virtual_ids: Ints
    bucket_counts: Ints
    stats: WheelStats = field(default_factory=WheelStats)


def take(filing: Filing, clock_ms: int, stats: WheelStats) -> WheelSnapshot:
    """Return a snapshot of the filed handles, and drop stale entries.

    Args:
        filing: the buckets and columns.
        clock_ms: the clock of the wheel, milliseconds.
        stats: its counters.
    """
    slots = sorted(slot for slot, bucket in filing.buckets.items() if bucket.live)
    entries = [filing.drop_stale(slot) for slot in slots]
    buckets = [filing.buckets[slot] for slot in slots]
    handles: Entries = np.concatenate(entries) if entries else np.empty(0, np.int32)
    return WheelSnapshot(
        tick_ms=filing.geometry.tick_ms,
        wheel_size=filing.geometry.wheel_size,
        clock_ms=clock_ms,
        handles=handles,
        deadlines_ms=filing.deadline[handles],
        bucket_levels=np.array([bucket.level for bucket in buckets], np.int8),
        bucket_virtual_ids=np.array([bucket.virtual_id for bucket in buckets], np.int64),
        bucket_counts=np.array([bucket.live for bucket in buckets], np.int64),
        stats=stats,
    )


def verify(snapshot: WheelSnapshot, geometry: Geometry) -> None:
    """Check that a snapshot does not contradict itself; `refill` finds handles that occur twice.

    Raises:
        SnapshotError: it does; the message says where.
    """
    buckets = len(snapshot.bucket_counts)
    if not len(snapshot.bucket_levels) == len(snapshot.bucket_virtual_ids) == buckets:
        raise SnapshotError("the columns of the bucket table differ in length")
    if len(snapshot.handles) != len(snapshot.deadlines_ms):
        raise SnapshotError(f"{len(snapshot.handles)} handles with {len(snapshot.deadlines_ms)} deadlines")
    if not 0 <= snapshot.clock_ms <= TIME_MS_MAX:
        raise SnapshotError(f"the clock is at {snapshot.clock_ms} ms")
    if (snapshot.bucket_counts < 1).any() or int(snapshot.bucket_counts.sum()) != len(snapshot.handles):
        raise SnapshotError(f"the buckets do not add up to {len(snapshot.handles)} handles")
    if len(snapshot.handles) and snapshot.handles.min() < 0:
        raise SnapshotError(f"handle {snapshot.handles.min()} is negative")
    _verify_buckets(snapshot, geometry)


def _verify_buckets(snapshot: WheelSnapshot, geometry: Geometry) -> None:
    levels = snapshot.bucket_levels.astype(np.int64)
    if ((levels < -1) | (levels >= len(geometry.spans))).any():
        raise SnapshotError(f"a bucket is on none of the levels 0..{len(geometry.spans) - 1}")
    now = snapshot.clock_ms // geometry.tick_ms
    on_wheel = levels >= 0
    ages = snapshot.bucket_virtual_ids[on_wheel] - now // np.array(geometry.spans)[levels[on_wheel]]
    if ((ages < 1) | (ages >= geometry.wheel_size)).any():
        raise SnapshotError(f"a bucket is outside of the range of its level at {snapshot.clock_ms} ms")
    slots = _slots(snapshot, geometry)
    if len(np.unique(slots)) != len(slots):
        raise SnapshotError("two buckets share one slot")
    firsts = _ticks(snapshot, geometry)
    ticks = geometry.ticks_of(snapshot.deadlines_ms)
    if (ticks < np.repeat(firsts, snapshot.bucket_counts)).any() or (snapshot.deadlines_ms > TIME_MS_MAX).any():
        raise SnapshotError("a deadline is out of the range of its bucket")


def refill(filing: Filing, snapshot: WheelSnapshot) -> None:
    """File the handles of a verified snapshot by slicing, without reading a deadline or sorting.

    Args:
        filing: an empty one, with room for every handle.
        snapshot: a verified snapshot.

    Raises:
        SnapshotError: a handle is filed twice.
    """
    slots = _slots(snapshot, filing.geometry)
    levels, virtual_ids = snapshot.bucket_levels.tolist(), snapshot.bucket_virtual_ids.tolist()
    ticks = _ticks(snapshot, filing.geometry).tolist()
    counts = snapshot.bucket_counts
    floors = []
    end = 0
    for slot, level, virtual_id, tick, count in zip(
        slots.tolist(), levels, virtual_ids, ticks, counts.tolist(), strict=True
    ):
        start, end = end, end + count
        bucket = Bucket(level, virtual_id, tick, snapshot.handles[start:end])
        filing.add(slot, bucket)
        floors.append(filing.floor_of(bucket))
    filing.deadline[snapshot.handles] = snapshot.deadlines_ms
    filing.floor[snapshot.handles] = np.repeat(np.array(floors, np.int64), counts)
    filing.where[snapshot.handles] = np.repeat(slots, counts)
    filing.filed = len(snapshot.handles)
    if np.count_nonzero(filing.where != NOT_FILED) != filing.filed:
        raise SnapshotError("a handle is filed twice")


def _slots(snapshot: WheelSnapshot, geometry: Geometry) -> Ints:
    levels = snapshot.bucket_levels.astype(np.int64)
    return np.where(levels < 0, OVERDUE_SLOT, geometry.slots_of(levels, snapshot.bucket_virtual_ids))


def _ticks(snapshot: WheelSnapshot, geometry: Geometry) -> Ints:
    levels = snapshot.bucket_levels.astype(np.int64)
    return np.where(levels < 0, BEFORE_ALL_TIME, snapshot.bucket_virtual_ids * np.array(geometry.spans)[levels])
