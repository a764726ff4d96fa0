"""Where a deadline is filed: Kafka's golden vectors, and every boundary of every level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing_wheel import TIME_MS_MAX, Geometry, TimingWheel
from timing_wheel.geometry import SLOTS_MAX

Place = tuple[int, int, int] | None
"""Kafka's level (counted from 1), index of the bucket in it, expiration of the bucket in ms; None fires at once."""

SAME_AS_KAFKA: list[tuple[int, int, int, int, Place]] = [
    (1, 3, 0, 0, None),
    (1, 3, 0, 1, (1, 1, 1)),
    (1, 3, 0, 2, (1, 2, 2)),
    (1, 3, 0, 3, (2, 1, 3)),
    (1, 3, 0, 4, (2, 1, 3)),
    (1, 3, 0, 8, (2, 2, 6)),
    (1, 3, 0, 9, (3, 1, 9)),
    (1, 3, 0, 27, (4, 1, 27)),
    (1, 3, 0, 45_000, (10, 2, 39_366)),
    (1, 3, 0, 300_000, (12, 1, 177_147)),
    (1, 20, 0, 0, None),
    (1, 20, 0, 1, (1, 1, 1)),
    (1, 20, 0, 19, (1, 19, 19)),
    (1, 20, 0, 20, (2, 1, 20)),
    (1, 20, 0, 21, (2, 1, 20)),
    (1, 20, 0, 399, (2, 19, 380)),
    (1, 20, 0, 400, (3, 1, 400)),
    (1, 20, 0, 8_000, (4, 1, 8_000)),
    (1, 20, 0, 45_000, (4, 5, 40_000)),
    (1, 20, 0, 300_000, (5, 1, 160_000)),
    (10, 5, 1_000, 0, None),
    (10, 5, 1_000, 10, (1, 1, 1_010)),
    (10, 5, 1_000, 50, (2, 1, 1_050)),
    (10, 5, 1_000, 51, (2, 1, 1_050)),
    (10, 5, 1_000, 250, (3, 0, 1_250)),
    (10, 5, 1_000, 1_250, (4, 1, 1_250)),
    (10, 5, 1_000, 45_000, (6, 1, 31_250)),
    (10, 5, 1_000, 300_000, (7, 1, 156_250)),
    (100, 20, 0, 0, None),
    (100, 20, 0, 100, (1, 1, 100)),
    (100, 20, 0, 2_000, (2, 1, 2_000)),
    (100, 20, 0, 2_001, (2, 1, 2_000)),
    (100, 20, 0, 40_000, (3, 1, 40_000)),
    (100, 20, 0, 45_000, (3, 1, 40_000)),
    (100, 20, 0, 300_000, (3, 7, 280_000)),
    (100, 20, 0, 800_000, (4, 1, 800_000)),
]

ROUNDED_UP_WHERE_KAFKA_ROUNDS_DOWN: list[tuple[int, int, int, int, Place]] = [
    (10, 5, 1_000, 9, (1, 1, 1_010)),  # Kafka fires it at once, 9 ms early
    (10, 5, 1_000, 11, (1, 2, 1_020)),  # Kafka: at 1010
    (10, 5, 1_000, 49, (2, 1, 1_050)),  # Kafka: level 1, at 1040
    (10, 5, 1_000, 249, (3, 0, 1_250)),  # Kafka: level 2, at 1200
    (100, 20, 0, 99, (1, 1, 100)),  # Kafka fires it at once, 99 ms early
    (100, 20, 0, 101, (1, 2, 200)),  # Kafka: at 100
    (100, 20, 0, 1_999, (2, 1, 2_000)),  # Kafka: level 1, at 1900
    (100, 20, 0, 39_999, (3, 1, 40_000)),  # Kafka: level 2, at 38000
]


def place_of(wheel: TimingWheel) -> Place:
    """Tell where the only handle of a wheel is filed, in Kafka's words."""
    if wheel.overdue:
        return None
    [(level, slot)] = [
        (level, slot) for level in wheel.occupancy(slots=True) for slot in np.flatnonzero(level.slot_counts)
    ]
    expiration = wheel.next_expiration_ms()
    assert expiration is not None
    return level.level + 1, int(slot), expiration


@pytest.mark.parametrize(
    ("tick_ms", "wheel_size", "start_ms", "delay_ms", "place"), SAME_AS_KAFKA + ROUNDED_UP_WHERE_KAFKA_ROUNDS_DOWN
)
def test_a_deadline_is_filed_where_kafka_files_it(
    tick_ms: int, wheel_size: int, start_ms: int, delay_ms: int, place: Place
) -> None:
    """Each deadline is in the level, bucket and expiration that Kafka's own classes gave it, after rounding up."""
    wheel = TimingWheel(tick_ms=tick_ms, wheel_size=wheel_size, start_ms=start_ms)
    wheel.file([0], [start_ms + delay_ms])
    assert place_of(wheel) == place


@pytest.mark.parametrize("wheel_size", [2, 3, 5, 20, 60])
@pytest.mark.parametrize("now", [0, 1, 19, 20, 21, 399, 400, 401, 12_345_678])
def test_each_level_covers_up_to_its_limit(wheel_size: int, now: int) -> None:
    """W2: one tick before a level's limit is on the level, the limit on the next, and so is one tick after it."""
    geometry = Geometry(1, wheel_size)
    limits = list(geometry.limits(now))
    for level, limit in enumerate(limits[:8]):
        levels, _ = geometry.locate(np.array([limit - 1, limit, limit + 1]), now)
        # With two buckets a level, and now before the end of a span, a level may cover a single tick beyond the last.
        after = level + 1 if limit + 1 < limits[level + 1] else level + 2
        assert levels.tolist() == [level, level + 1, after]


@pytest.mark.parametrize("level", range(5))
def test_each_bucket_begins_at_a_multiple_of_its_span(level: int) -> None:
    """W2: a bucket holds its begin, but not the tick before it; its last tick, but not the one after."""
    geometry = Geometry(100, 20)
    span = geometry.spans[level]
    for virtual_id in range(2, 19):
        begin, end = virtual_id * span, (virtual_id + 1) * span
        levels, virtual_ids = geometry.locate(np.array([begin - 1, begin, end - 1, end]), 0)
        assert levels.tolist() == [level, level, level, level + (end == 20 * span)]
        assert virtual_ids[:3].tolist() == [virtual_id - 1, virtual_id, virtual_id]
        assert int(virtual_ids[3]) == (1 if end == 20 * span else virtual_id + 1)


@given(deadline=st.integers(-10_000, TIME_MS_MAX), tick_ms=st.integers(1, 100_000))
def test_rounding_is_up_and_by_less_than_a_tick(deadline: int, tick_ms: int) -> None:
    """A tick begins at or after the deadline that it stands for, and less than a tick after it."""
    tick = int(Geometry(tick_ms, 20).ticks_of(np.array([deadline]))[0])
    assert 0 <= tick * tick_ms - deadline < tick_ms


@given(
    tick_ms=st.integers(1, 10_000),
    wheel_size=st.integers(2, 100),
    now_ms=st.integers(0, TIME_MS_MAX),
    deadline=st.integers(0, TIME_MS_MAX),
)
def test_every_deadline_has_a_place_at_every_clock(tick_ms: int, wheel_size: int, now_ms: int, deadline: int) -> None:
    """However far away a deadline is, some level covers it, and its bucket begins after now and not after it."""
    geometry = Geometry(tick_ms, wheel_size)
    now = now_ms // tick_ms
    tick = max(now + 1, int(geometry.ticks_of(np.array([deadline]))[0]))
    levels, virtual_ids = geometry.locate(np.array([tick]), now)
    span = geometry.spans[int(levels[0])]
    assert now < int(virtual_ids[0]) * span <= tick
    assert 1 <= int(virtual_ids[0]) - now // span < wheel_size


@given(wheel_size=st.integers(2, 50), now=st.integers(0, 10**6))
def test_two_buckets_never_share_a_slot(wheel_size: int, now: int) -> None:
    """All buckets that may be in use at one time have slots of their own, none of them the overdue one."""
    geometry = Geometry(1, wheel_size)
    slots: list[int] = []
    for level, span in enumerate(geometry.spans[:5]):
        virtual_ids = now // span + np.arange(1, wheel_size)
        numbers = geometry.slots_of(np.full(wheel_size - 1, level), virtual_ids).tolist()
        assert {geometry.level_of(slot) for slot in numbers} == {level}
        slots += numbers
    assert len(set(slots)) == len(slots)
    assert min(slots) > 0


@pytest.mark.parametrize(
    ("tick_ms", "wheel_size", "words"),
    [(0, 20, "tick_ms is 0"), (-1, 20, "tick_ms is -1"), (100, 1, "at least 2 buckets"), (1, SLOTS_MAX, "take fewer")],
)
def test_a_geometry_without_sense_is_refused(tick_ms: int, wheel_size: int, words: str) -> None:
    """A wheel that could not work is not made, and the message says which value is to blame."""
    with pytest.raises(ValueError, match=words):
        Geometry(tick_ms, wheel_size)
