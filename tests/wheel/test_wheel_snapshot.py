"""W7: a snapshot is the whole wheel, and one that contradicts itself is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timing_wheel import SnapshotError, TimingWheel, WheelSnapshot


def busy_wheel(seed: int = 1, members: int = 2_000) -> TimingWheel:
    """Make a wheel with several levels, stale entries, lazily re-armed and overdue handles."""
    random = np.random.default_rng(seed)
    wheel = TimingWheel(tick_ms=100, wheel_size=20, start_ms=1_000_000)
    handles = np.arange(members)
    wheel.file(handles, 1_000_000 + random.integers(1, 3_000_000, members))
    wheel.advance(1_050_050)
    filed = handles[wheel.deadlines()[handles] < 2**62]
    wheel.touch(filed, 1_050_050 + random.integers(-100, 600_000, len(filed)))
    wheel.cancel(random.choice(filed, len(filed) // 10))
    return wheel


def play(wheel: TimingWheel) -> list[tuple[list[int], tuple[Any, ...]]]:
    """Drive a wheel to its end, with what it says on the way."""
    said = []
    for clock_ms in range(1_050_050, 1_700_000, 1_700):
        fired = wheel.advance(clock_ms).tolist()
        said.append((fired, (wheel.stats, wheel.occupancy(slots=True), wheel.next_expiration_ms())))
    return said


def test_a_restored_wheel_goes_on_exactly_as_the_first() -> None:
    """The same handles in the same order, the same moves, the same occupancy, to the end."""
    first = busy_wheel()
    second = TimingWheel.restore(first.snapshot(), capacity=10)
    second.check()
    assert play(second) == play(first)


def test_a_snapshot_is_not_changed_by_what_the_wheels_do_later() -> None:
    """Neither the wheel it was taken of nor one made from it writes to its arrays."""
    wheel = busy_wheel()
    snapshot = wheel.snapshot()
    before = [column.copy() for column in columns(snapshot)]
    restored = TimingWheel.restore(snapshot)
    for one in (wheel, restored):
        one.file(np.arange(3_000), np.full(3_000, 1_100_000))
        one.cancel(np.arange(500))
        play(one)
    assert all(np.array_equal(was, now) for was, now in zip(before, columns(snapshot), strict=True))


def test_a_snapshot_of_a_snapshot_is_the_same() -> None:
    """Taking a snapshot of a restored wheel gives the same arrays: nothing drifts from batch to batch."""
    snapshot = busy_wheel().snapshot()
    again = TimingWheel.restore(snapshot).snapshot()
    assert all(np.array_equal(one, other) for one, other in zip(columns(snapshot), columns(again), strict=True))
    assert (again.clock_ms, again.stats) == (snapshot.clock_ms, snapshot.stats)


def test_an_empty_wheel_has_a_snapshot() -> None:
    """Nothing filed, nothing stored but the clock and the counters."""
    wheel = TimingWheel(start_ms=77)
    wheel.advance(76)
    restored = TimingWheel.restore(wheel.snapshot())
    assert (len(restored), restored.clock_ms, restored.stats.regressions) == (0, 77, 1)


def test_deadlines_may_come_from_a_column_of_the_owner() -> None:
    """Who keeps deadlines by handle can leave them out of storage and put them back."""
    wheel = busy_wheel()
    column, snapshot = wheel.deadlines().copy(), wheel.snapshot()
    rebuilt = dataclasses.replace(snapshot, deadlines_ms=column[snapshot.handles])
    assert play(TimingWheel.restore(rebuilt)) == play(wheel)


def changed(snapshot: WheelSnapshot, column: str, index: int, value: int) -> WheelSnapshot:
    """Copy a snapshot with one value of one column changed."""
    copy = getattr(snapshot, column).copy()
    copy[index] = value
    return dataclasses.replace(snapshot, **{column: copy})


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("handles", -5, "handle -5 is negative"),
        ("deadlines_ms", 0, "out of the range of its bucket"),
        ("deadlines_ms", 2**62, "out of the range of its bucket"),
        ("bucket_counts", 0, "do not add up"),
        ("bucket_counts", 10**6, "do not add up"),
        ("bucket_levels", 100, "on none of the levels"),
        ("bucket_levels", -2, "on none of the levels"),
        ("bucket_virtual_ids", 0, "outside of the range of its level"),
        ("bucket_virtual_ids", 2**62, "outside of the range of its level"),
    ],
)
def test_a_snapshot_with_one_wrong_value_is_refused(column: str, value: int, words: str) -> None:
    """Each column is checked against the others, and the message names what does not fit."""
    snapshot = busy_wheel().snapshot()
    with pytest.raises(SnapshotError, match=words):
        TimingWheel.restore(changed(snapshot, column, -1, value))


def test_a_handle_in_two_buckets_is_refused() -> None:
    """A handle has one deadline, so it cannot be filed twice."""
    snapshot = busy_wheel().snapshot()
    with pytest.raises(SnapshotError, match="filed twice"):
        TimingWheel.restore(changed(snapshot, "handles", -1, int(snapshot.handles[-2])))


@pytest.mark.parametrize("column", ["deadlines_ms", "bucket_levels", "bucket_virtual_ids", "handles"])
def test_a_truncated_snapshot_is_refused(column: str) -> None:
    """Columns of different lengths are no snapshot."""
    snapshot = busy_wheel().snapshot()
    with pytest.raises(SnapshotError):
        TimingWheel.restore(dataclasses.replace(snapshot, **{column: getattr(snapshot, column)[:-1]}))


def test_two_buckets_in_one_slot_are_refused() -> None:
    """A slot holds one bucket at a time."""
    wheel = TimingWheel()
    wheel.file([0, 1], [500, 600])
    with pytest.raises(SnapshotError, match="share one slot"):
        TimingWheel.restore(changed(wheel.snapshot(), "bucket_virtual_ids", 1, 5))


@pytest.mark.parametrize(("virtual_id", "covered"), [(0, False), (1, True), (19, True), (20, False)])
def test_a_bucket_lies_within_what_its_level_covers(virtual_id: int, covered: bool) -> None:  # noqa: FBT001 - a table
    """At tick 0 the lowest level has the buckets 1 to 19: the ones before and after them are of another turn."""
    wheel = TimingWheel()
    wheel.file([0], [500])
    wheel.touch([0], [5_000])
    snapshot = changed(wheel.snapshot(), "bucket_virtual_ids", 0, virtual_id)
    if covered:
        TimingWheel.restore(snapshot).check()
    else:
        with pytest.raises(SnapshotError, match="outside of the range of its level"):
            TimingWheel.restore(snapshot)


def test_a_clock_before_time_is_refused() -> None:
    """A clock out of range is refused like any other value."""
    with pytest.raises(SnapshotError, match="the clock is at -1"):
        TimingWheel.restore(dataclasses.replace(busy_wheel().snapshot(), clock_ms=-1))


@settings(deadline=None)
@given(
    column=st.sampled_from(["handles", "deadlines_ms", "bucket_counts", "bucket_levels", "bucket_virtual_ids"]),
    position=st.integers(0, 10**6),
    value=st.integers(-(2**63), 2**63 - 1),
)
def test_a_damaged_snapshot_is_refused_or_is_a_sound_wheel(column: str, position: int, value: int) -> None:
    """Whatever one value becomes, restoring either refuses by name or gives a wheel that holds its invariants."""
    snapshot = busy_wheel(members=60).snapshot()
    kept = getattr(snapshot, column)
    # Handles index memory: damage stays within what a wheel of this size would allocate.
    bounds = (-5, 10_000) if column == "handles" else (np.iinfo(kept.dtype).min, np.iinfo(kept.dtype).max)
    value = min(max(value, int(bounds[0])), int(bounds[1]))
    try:
        wheel = TimingWheel.restore(changed(snapshot, column, position % len(kept), value))
    except SnapshotError:
        return
    wheel.check()


def columns(snapshot: WheelSnapshot) -> list[np.ndarray]:
    """List the arrays of a snapshot."""
    return [
        snapshot.handles,
        snapshot.deadlines_ms,
        snapshot.bucket_levels,
        snapshot.bucket_virtual_ids,
        snapshot.bucket_counts,
    ]
