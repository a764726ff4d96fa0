"""Kafka's own tests of its timer, re-expressed under their upstream names, and three findings on its wheel.

Kafka's wheel files one object and says whether it did; this one files columns. So "`add` returned false" reads "is
overdue: comes out of the next `advance`", and a task is a handle.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from timing_wheel import TimingWheel


def java_random(seed: int, bound: int) -> Iterator[int]:
    """Draw what `java.util.Random(seed).nextInt(bound)` draws, for a bound that is no power of two."""
    state = (seed ^ 0x5DEECE66D) & (2**48 - 1)
    while True:
        state = (state * 0x5DEECE66D + 0xB) & (2**48 - 1)
        bits = state >> 17
        if bits - bits % bound + bound - 1 < 2**31:
            yield bits % bound


class TestTimerTest:
    """`TimerTest`: a timer of tick 1 and size 3."""

    def test_already_expired_task(self) -> None:
        """`testAlreadyExpiredTask`: what is armed after its deadline is due without the clock moving."""
        wheel = TimingWheel(tick_ms=1, wheel_size=3, start_ms=1_000)
        wheel.file([0, 1, 2, 3, 4], [995, 996, 997, 998, 999])
        assert wheel.overdue == 5
        assert wheel.advance(1_000).tolist() == [0, 1, 2, 3, 4]

    def test_task_expiration(self) -> None:
        """`testTaskExpiration`: 585 tasks on 500 deadlines, each fires exactly once, in the order of deadlines."""
        delays = [*range(5), *range(10, 100), *range(10, 100), *range(100, 500)]
        wheel = TimingWheel(tick_ms=1, wheel_size=3)
        wheel.file(range(585), delays)
        fired = [handle for clock_ms in range(0, 600, 3) for handle in wheel.advance(clock_ms).tolist()]
        assert [delays[handle] for handle in fired] == sorted(delays)
        assert sorted(fired) == list(range(585))


class TestTimerTaskListTest:
    """`TimerTaskListTest`: the count of tasks is exact through moves and cancellations."""

    def test_all(self) -> None:
        """`testAll`: ten tasks in one bucket, moved to two others, cancelled bucket by bucket."""
        wheel = TimingWheel(tick_ms=1, wheel_size=20)
        for handle in range(10):
            wheel.file([handle], [15])
            assert len(wheel) == handle + 1
        for handle in range(4):
            wheel.file([handle], [10])
            assert len(wheel) == 10
        for handle in range(4, 10):
            wheel.file([handle], [5])
            assert len(wheel) == 10
        assert [count for count in wheel.occupancy(slots=True)[0].slot_counts if count] == [6, 4]
        wheel.cancel(range(4))
        assert len(wheel) == 6
        wheel.cancel(range(10))
        assert len(wheel) == 0
        wheel.check()

    def test_get_delay(self) -> None:
        """`testGetDelay`: what is left until a bucket expires follows from its expiration and the clock."""
        wheel = TimingWheel(tick_ms=1, wheel_size=20)
        wheel.file([0], [10_000])
        expiration = wheel.next_expiration_ms()
        assert expiration == 8_000
        wheel.advance(5_000)
        assert wheel.next_expiration_ms() == expiration


class TestTimingWheelTest:
    """`TimingWheelTest`: tick 10, size 5, start 1000."""

    @pytest.fixture
    def wheel(self) -> TimingWheel:
        """Make the wheel of the upstream class."""
        return TimingWheel(tick_ms=10, wheel_size=5, start_ms=1_000)

    def test_add_valid_task(self, wheel: TimingWheel) -> None:
        """`testAddValidTask`: a task in the future is filed."""
        wheel.file([0], [1_020])
        assert (len(wheel), wheel.overdue, wheel.next_expiration_ms()) == (1, 0, 1_020)

    def test_add_expired_task(self, wheel: TimingWheel) -> None:
        """`testAddExpiredTask`: a task in the past is due at once."""
        wheel.file([0], [999])
        assert (wheel.overdue, wheel.next_expiration_ms()) == (1, 1_000)

    def test_add_cancelled_task(self, wheel: TimingWheel) -> None:
        """`testAddCancelledTask`: a cancelled task is not filed, and never fires."""
        wheel.file([0], [1_020])
        wheel.cancel([0])
        assert (len(wheel), wheel.next_expiration_ms()) == (0, None)
        assert wheel.advance(2_000).tolist() == []

    def test_add_task_in_current_bucket(self, wheel: TimingWheel) -> None:
        """`testAddTaskInCurrentBucket`: Kafka takes 1005 for expired at 1000; here it waits for the next tick."""
        wheel.file([0], [1_005])
        assert wheel.overdue == 0
        assert [wheel.advance(clock_ms).tolist() for clock_ms in (1_000, 1_005, 1_009, 1_010)] == [[], [], [], [0]]

    def test_advance_clock_within_tick(self, wheel: TimingWheel) -> None:
        """`testAdvanceClockWithinTick`: within a tick nothing of the next one is due."""
        wheel.file([0], [1_010])
        assert wheel.advance(1_005).tolist() == []
        wheel.check()

    def test_advance_clock_to_next_tick(self, wheel: TimingWheel) -> None:
        """`testAdvanceClockToNextTick`: at the next tick it is."""
        wheel.file([0], [1_010])
        assert wheel.advance(1_010).tolist() == [0]

    def test_overflow_wheel_creation(self, wheel: TimingWheel) -> None:
        """`testOverflowWheelCreation`: 1060 and 1061 are beyond the first level, and share the one above it."""
        assert len(wheel.occupancy()) == 1
        wheel.file([0], [1_060])
        assert [level.entries for level in wheel.occupancy()] == [0, 1]
        wheel.file([1], [1_061])
        assert [level.entries for level in wheel.occupancy()] == [0, 2]

    def test_advance_clock_with_overflow_wheel(self, wheel: TimingWheel) -> None:
        """`testAdvanceClockWithOverflowWheel`: at 1060 the level above, of tick 50, counts from 1050."""
        wheel.advance(1_060)
        wheel.file([0, 1], [1_109, 1_300])
        assert [(level.entries, level.tick_ms) for level in wheel.occupancy()] == [(0, 10), (1, 50), (1, 250)]


@pytest.mark.parametrize(
    ("geometry", "step_ms", "flushes", "filings"),
    [
        ((1, 20, 0), 1, 29_705, 4.261),  # Kafka: the same
        ((1, 20, 0), 200, 13_070, 3.404),  # Kafka: 29705 and 4.261, since it re-files under the clock of each bucket
        ((10, 5, 1_000), 1, 17_496, 5.270),  # Kafka rounds down: 17569 and 5.274
        ((100, 20, 0), 1, 2_997, 2.768),  # Kafka rounds down: 2996 and 2.763
        ((100, 20, 0), 5_000, 989, 2.098),  # Kafka: 2996 and 2.763
        ((1_000, 60, 0), 1, 300, 1.788),  # Kafka rounds down: 299 and 1.786
    ],
)
def test_twenty_thousand_random_deadlines_as_in_kafka(
    geometry: tuple[int, int, int], step_ms: int, flushes: int, filings: float
) -> None:
    """Finding 1: nothing fires early, all fires within a tick and a step, and the work is what Kafka's classes do."""
    tick_ms, wheel_size, start_ms = geometry
    random = java_random(42, 300_000)
    deadlines = [start_ms + 1 + next(random) for _ in range(20_000)]
    wheel = TimingWheel(tick_ms=tick_ms, wheel_size=wheel_size, start_ms=start_ms)
    wheel.file(range(20_000), deadlines)
    clock_ms = start_ms
    while len(wheel):
        clock_ms += step_ms
        for handle in wheel.advance(clock_ms).tolist():
            assert 0 <= clock_ms - deadlines[handle] <= (tick_ms - 1) + (step_ms - 1)
    stats = wheel.stats
    assert stats.flushes == flushes
    assert round((stats.moves + stats.fires) / 20_000, 3) == filings


def test_a_single_jump_fires_in_the_order_of_deadlines() -> None:
    """Golden vector: ten tasks on (1, 3), one jump to 100; Kafka fires them in this very order."""
    wheel = TimingWheel(tick_ms=1, wheel_size=3)
    wheel.file(range(10), [26, 1, 9, 3, 27, 2, 8, 5, 3, 10])
    assert wheel.advance(100).tolist() == [1, 5, 3, 8, 7, 6, 2, 9, 0, 4]


def test_an_empty_wheel_jumps() -> None:
    """Finding 2: after an idle hour a 45 s timer is filed as on a fresh wheel; Kafka's goes two levels higher."""
    wheel = TimingWheel(tick_ms=1, wheel_size=20)
    wheel.file([0], [5])
    assert wheel.advance(5).tolist() == [0]
    wheel.advance(3_600_000)
    wheel.file([0], [3_645_000])
    assert len(wheel.occupancy()) == 4
    fired = [clock_ms for clock_ms in range(3_600_000, 3_646_000) if len(wheel.advance(clock_ms))]
    assert fired == [3_645_000]
    assert wheel.stats.moves == 2  # 3,640,000 on level 3, and its 5000 ms more on level 2; Kafka re-inserts 6 times


def test_a_slot_is_flushed_before_it_is_used_again() -> None:
    """Finding 3: deadlines 500 and 2500 share a slot; the clock jumps from one to the other and both are on time."""
    wheel = TimingWheel(tick_ms=100, wheel_size=20)
    wheel.file([0], [500])
    assert wheel.advance(2_400).tolist() == [0]
    wheel.file([1], [2_500])
    assert wheel.advance(2_499).tolist() == []
    assert wheel.advance(2_500).tolist() == [1]


def test_what_is_filed_again_never_meets_a_bucket_of_the_last_turn() -> None:
    """Finding 3: of two buckets that are due, the first files a handle again in the slot of the second."""
    wheel = TimingWheel(tick_ms=100, wheel_size=20)
    wheel.file([0, 1], [500, 600])
    wheel.touch([0], [2_600])
    assert wheel.advance(700).tolist() == [1]
    wheel.check()
    assert wheel.advance(2_599).tolist() == []
    assert wheel.advance(2_600).tolist() == [0]
