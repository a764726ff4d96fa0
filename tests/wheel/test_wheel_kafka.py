"""This wheel beside Kafka's: the work on twenty thousand random deadlines, a golden vector, and three findings.

`test_wheel_geometry.py` has where each files a deadline, `test_wheel_model.py` what any wheel must hand out.
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
