"""The skew of the brokers' clocks, by the append times of ticks that were sent together."""

from __future__ import annotations

from heartwheel.engine.runtime.driver.skew import ROUNDS, BrokerClocks
from support.output_rows import T0


def test_the_skew_is_that_of_the_clocks_and_not_of_the_way() -> None:
    """A tick that takes long says nothing of a clock: of some the soonest counts."""
    clocks = BrokerClocks()
    assert clocks.skew_ms() is None
    for mono_ms, slow_ms in ((0, 900), (200, 0), (400, 2_000)):
        clocks.note(0, mono_ms, T0 + mono_ms + 3)
        clocks.note(1, mono_ms, T0 + mono_ms + slow_ms + 4_003)
        clocks.note(2, mono_ms, T0 + mono_ms + slow_ms - 997)
    assert clocks.skew_ms() == 5_000
    clocks.forget(2)
    assert clocks.skew_ms() == 4_000


def test_one_clock_has_no_skew() -> None:
    """Of one partition there is nothing to compare."""
    clocks = BrokerClocks()
    clocks.note(0, 0, T0)
    assert clocks.skew_ms() is None


def test_a_clock_that_is_set_shows_after_a_few_seconds() -> None:
    """The newest ticks alone are looked at, so a clock that was set ahead, or mended, is seen soon."""
    clocks = BrokerClocks()
    for step_ms in (0, 30_000, 0):
        for tick in range(ROUNDS):
            clocks.note(0, 200 * tick, T0 + 200 * tick)
            clocks.note(1, 200 * tick, T0 + 200 * tick + step_ms)
        assert clocks.skew_ms() == step_ms
