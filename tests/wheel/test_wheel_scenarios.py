"""Scenarios that a trusted wheel must survive: W3 to W6 and W8; and what it says to a caller who errs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing_wheel import HANDLE_MAX, NEVER, TIME_MS_MAX, TimingWheel

DAY_MS = 86_400_000


@given(
    timeout_ms=st.integers(1, DAY_MS),
    tick_ms=st.integers(1, 10_000),
    wheel_size=st.integers(2, 64),
    start_ms=st.integers(0, 2 * 10**12),
)
def test_never_early_and_late_by_less_than_a_tick(
    timeout_ms: int, tick_ms: int, wheel_size: int, start_ms: int
) -> None:
    """W3: any timeout from 1 ms to a day, any tick and any start fires in [deadline, deadline + tick)."""
    deadline = start_ms + timeout_ms
    wheel = TimingWheel(tick_ms=tick_ms, wheel_size=wheel_size, start_ms=start_ms)
    wheel.file([0], [deadline])
    while (expiration := wheel.next_expiration_ms()) is not None:
        assert not len(wheel.advance(max(wheel.clock_ms, min(expiration, deadline) - 1)))
        due = wheel.advance(expiration)
    assert due.tolist() == [0]
    assert deadline <= wheel.clock_ms < deadline + tick_ms


def test_a_heartbeat_moves_nothing_and_a_flush_moves_a_member_once() -> None:
    """W5: members who beat for an hour cost at most one move a flushed bucket, far fewer than their heartbeats."""
    members, session_ms, beat_ms = 500, 45_000, 3_000
    wheel = TimingWheel()
    handles = np.arange(members)
    wheel.file(handles, session_ms + handles * 7)
    beats = 0
    for clock_ms in range(beat_ms, 3_600_000, beat_ms):
        moves = wheel.stats.moves
        wheel.touch(handles, clock_ms + session_ms + handles * 7)
        assert wheel.stats.moves == moves
        beats += members
        assert not len(wheel.advance(clock_ms))
        assert wheel.stats.moves - moves <= members
    moves_per_session = wheel.stats.moves / members / (3_600_000 / session_ms)
    assert moves_per_session <= 2.5
    assert wheel.stats.moves < beats / 6


def test_a_hundred_thousand_members_on_one_deadline() -> None:
    """W6: they all fire at their deadline, in the order of handles, out of one bucket."""
    wheel = TimingWheel(capacity=100_000)
    wheel.file(np.random.default_rng(7).permutation(100_000), np.full(100_000, 45_000))
    assert not len(wheel.advance(44_999))
    assert np.array_equal(wheel.advance(45_000), np.arange(100_000))
    assert wheel.stats.fires == 100_000


def test_a_return_in_the_firing_slot_keeps_a_member() -> None:
    """W8: of a bucket that is due, who was cancelled or came back in time does not fire; the others do."""
    wheel = TimingWheel()
    wheel.file(range(5), [1_000] * 5)
    wheel.advance(999)
    wheel.cancel([1])
    wheel.touch([2], [46_000])
    wheel.cancel([3])
    wheel.file([3], [1_000])
    assert wheel.advance(1_000).tolist() == [0, 3, 4]
    wheel.check()
    assert wheel.deadlines()[:5].tolist() == [NEVER, NEVER, 46_000, NEVER, NEVER]


@pytest.mark.parametrize("clock_ms", [5_000, 5_050, 5_099])
def test_alive_before_the_deadline_and_expired_at_it(clock_ms: int) -> None:
    """A deadline that is armed at the clock is due at once, one that is 1 ms later is not."""
    wheel = TimingWheel(start_ms=clock_ms)
    wheel.file([0, 1], [clock_ms, clock_ms + 1])
    assert wheel.advance(clock_ms).tolist() == [0]
    assert wheel.advance(5_100).tolist() == [1]


ARM_WAYS = ["file", "touch", "file_one"]
"""The ways to re-arm a handle that is filed: each must follow the same rule."""


def arm(wheel: TimingWheel, way: str, handle: int, deadline_ms: int) -> None:
    """Re-arm one handle in one of the ways."""
    if way == "file_one":
        wheel.file_one(handle, deadline_ms)
    else:
        getattr(wheel, way)([handle], [deadline_ms])


@pytest.mark.parametrize("way", ARM_WAYS)
@pytest.mark.parametrize(("deadline", "moves"), [(39_899, 1), (39_900, 1), (39_901, 0), (40_000, 0), (44_999, 0)])
def test_a_handle_moves_only_when_its_bucket_would_be_late(way: str, deadline: int, moves: int) -> None:
    """W2: filed at 45 s it is in the bucket of 40 s; what rounds up to an earlier tick moves it, nothing else does."""
    wheel = TimingWheel()
    wheel.file([0], [45_000])
    arm(wheel, way, 0, deadline)
    wheel.check()
    assert wheel.stats.moves == moves
    due = -(-deadline // 100) * 100
    assert wheel.advance(due - 1).tolist() == []
    assert wheel.advance(due).tolist() == [0]


@pytest.mark.parametrize("way", ARM_WAYS)
def test_a_deadline_that_passed_within_the_tick_is_due_at_once(way: str) -> None:
    """At 5050 a handle is re-armed from 5080 to 5020: both round up to 5100, but it is due now."""
    wheel = TimingWheel(start_ms=5_050)
    wheel.file([0], [5_080])
    arm(wheel, way, 0, 5_020)
    wheel.check()
    assert wheel.advance(5_050).tolist() == [0]


@pytest.mark.parametrize("way", ARM_WAYS)
def test_an_overdue_handle_stays_where_it_is(way: str) -> None:
    """Re-arming an overdue handle is one write, whether the new deadline passed as well or not."""
    wheel = TimingWheel(start_ms=5_050)
    wheel.file([0, 1], [5_000, 5_000])
    arm(wheel, way, 0, 4_000)
    arm(wheel, way, 1, 6_000)
    wheel.check()
    assert wheel.stats.moves == 0
    assert wheel.advance(5_050).tolist() == [0]
    assert wheel.advance(6_000).tolist() == [1]


def test_a_shorter_timeout_moves_a_member_at_once() -> None:
    """Re-arming to an earlier deadline fires at the earlier one, and the old entry does not fire again."""
    wheel = TimingWheel()
    wheel.file([0], [300_000])
    wheel.touch([0], [10_000])
    assert wheel.stats.moves == 1
    assert wheel.advance(10_000).tolist() == [0]
    assert wheel.advance(400_000).tolist() == []


@pytest.mark.parametrize("way", ["file", "file_one"])
def test_stale_entries_are_bounded_by_the_members(way: str) -> None:
    """A handle that comes and goes for ever does not make the wheel grow, and fires once in the end."""
    wheel = TimingWheel()
    wheel.file([0, 1], [300_000, 300_000])
    for _ in range(500):
        wheel.cancel([1])
        arm(wheel, way, 1, 300_000)
        arm(wheel, way, 1, 1_000)
        assert max(len(bucket) for bucket in wheel._filing.buckets.values()) <= 2 * 2 + 64
    wheel.check()
    assert wheel.advance(300_000).tolist() == [1, 0]


def test_a_clock_that_goes_back_is_ignored_and_counted() -> None:
    """The clock stays where it was, nothing comes out, and the counter tells."""
    wheel = TimingWheel(start_ms=10_000)
    wheel.file([0], [9_000])
    assert wheel.advance(9_999).tolist() == []
    assert (wheel.clock_ms, wheel.stats.regressions, wheel.overdue) == (10_000, 1, 1)


def test_deadlines_are_shown_and_can_not_be_written() -> None:
    """The column is indexed by handle, `NEVER` where nothing is filed, and read-only."""
    wheel = TimingWheel()
    wheel.file([2], [700])
    assert wheel.deadlines().tolist()[:3] == [NEVER, NEVER, 700]
    assert [wheel.deadline_of(handle) for handle in (-1, 0, 2, 10**6)] == [NEVER, NEVER, 700, NEVER]
    with pytest.raises(ValueError, match="read-only"):
        wheel.deadlines()[2] = 0


def test_touching_a_handle_that_is_not_filed_changes_nothing() -> None:
    """The call is refused as a whole: the filed handle in it keeps its deadline."""
    wheel = TimingWheel()
    wheel.file([0, 1], [1_000, 1_000])
    wheel.cancel([1])
    for stranger in (1, 99_999):
        with pytest.raises(KeyError, match=f"handle {stranger} is not filed"):
            wheel.touch([0, stranger], [5_000, 5_000])
    assert wheel.deadline_of(0) == 1_000
    wheel.check()


@pytest.mark.parametrize(
    ("handles", "deadlines", "error", "words"),
    [
        ([0, 1], [5], ValueError, "2 handles came with 1 deadlines"),
        ([-1], [5], ValueError, "handle -1 is out of range"),
        ([HANDLE_MAX + 1], [5], ValueError, "is out of range"),
        ([0], [TIME_MS_MAX + 1], ValueError, "out of range"),
        ([0.5], [5], TypeError, "`handles` is a column of float64"),
        ([0], [5.5], TypeError, "`deadlines_ms` is a column of float64"),
        ([[0]], [5], ValueError, "2 dimensions"),
        (np.array([2**63], np.uint64), [5], ValueError, "does not fit"),
    ],
)
def test_a_bad_column_is_refused_by_name(handles: Any, deadlines: Any, error: type[Exception], words: str) -> None:
    """What is wrong is named with its value, for both ways of arming, and nothing is filed."""
    wheel = TimingWheel()
    for arm in (wheel.file, wheel.touch):
        with pytest.raises(error, match=words):
            arm(handles, deadlines)
    assert len(wheel) == 0


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["file", "cancel", "advance"]), st.integers(0, 20), st.integers(-300, 100_000)),
        max_size=80,
    )
)
def test_one_handle_is_filed_as_a_column_of_one(steps: list[tuple[str, int, int]]) -> None:
    """The two ways leave the same wheel behind: places, counters, and what comes out."""
    columns, singles = TimingWheel(start_ms=1_000), TimingWheel(start_ms=1_000)
    for step, handle, delay in steps:
        if step == "file":
            columns.file([handle], [columns.clock_ms + delay])
            singles.file_one(handle, columns.clock_ms + delay)
        elif step == "cancel":
            columns.cancel([handle])
            singles.cancel_one(handle)
        else:
            clock_ms = columns.clock_ms + delay
            assert columns.advance(clock_ms).tolist() == singles.advance(clock_ms).tolist()
        singles.check()
        assert columns.occupancy(slots=True) == singles.occupancy(slots=True)
        assert columns.stats == singles.stats


@pytest.mark.parametrize(("handle", "deadline"), [(-1, 5), (HANDLE_MAX + 1, 5), (0, TIME_MS_MAX + 1)])
def test_a_bad_single_handle_or_deadline_is_refused(handle: int, deadline: int) -> None:
    """One handle is held to the same bounds as a column."""
    with pytest.raises(ValueError, match="is out of range"):
        TimingWheel().file_one(handle, deadline)


def test_a_time_that_is_no_integer_is_refused() -> None:
    """A clock in seconds, or a float of milliseconds, is an error of the caller and not rounded in silence."""
    wheel = TimingWheel()
    with pytest.raises(TypeError):
        wheel.advance(1.5)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(TypeError):
        wheel.file_one(0, 1.5)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(TypeError):
        TimingWheel(start_ms=1.5)  # type: ignore[arg-type]  # that is the test
    assert (len(wheel), wheel.clock_ms) == (0, 0)


def test_numpy_integers_are_integers() -> None:
    """Clocks and handles out of NumPy columns are as good as others."""
    wheel = TimingWheel(start_ms=np.int64(5))  # type: ignore[arg-type]  # NumPy's integers are no `int` to mypy
    wheel.file_one(np.int32(3), np.int64(100))  # type: ignore[arg-type]  # likewise
    assert wheel.advance(np.int64(100)).tolist() == [3]  # type: ignore[arg-type]  # likewise
    assert type(wheel.clock_ms) is int


def test_a_clock_out_of_range_is_refused() -> None:
    """A clock that sums could overflow is refused, at the start and later."""
    with pytest.raises(ValueError, match="start_ms is -1"):
        TimingWheel(start_ms=-1)
    with pytest.raises(ValueError, match="out of range"):
        TimingWheel().advance(TIME_MS_MAX + 1)


def test_the_last_accepted_deadline_fires_at_the_last_accepted_tick() -> None:
    """At the end of time nothing overflows: the deadline comes out at its tick, and not before."""
    wheel = TimingWheel(tick_ms=1, start_ms=TIME_MS_MAX - 10)
    wheel.file([0, 1], [TIME_MS_MAX, TIME_MS_MAX - 1])
    assert wheel.advance(TIME_MS_MAX - 1).tolist() == [1]
    assert wheel.advance(TIME_MS_MAX).tolist() == [0]
