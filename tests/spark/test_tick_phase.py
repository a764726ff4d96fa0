"""When ticks are sent: right before a batch begins, and never far from an interval apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.runtime.driver.ticker import LEAD_MS, until_next_ms


@given(wall_ms=st.floats(1e12, 2e12), interval_ms=st.integers(50, 60_000))
def test_a_tick_comes_right_before_a_batch_may_begin(wall_ms: float, interval_ms: int) -> None:
    """Whenever the last one was sent, the next is due `LEAD_MS` before a multiple of the interval."""
    due_ms = wall_ms + until_next_ms(wall_ms, interval_ms) + LEAD_MS
    assert min(due_ms % interval_ms, -due_ms % interval_ms) < 0.01


@given(wall_ms=st.floats(1e12, 2e12), interval_ms=st.integers(50, 60_000))
def test_a_clock_that_is_set_moves_a_tick_by_half_an_interval(wall_ms: float, interval_ms: int) -> None:
    """Whatever the clock shows, ticks come between half and one and a half intervals apart."""
    assert interval_ms / 2 <= until_next_ms(wall_ms, interval_ms) <= 1.5 * interval_ms
