"""Steps of the wall clock, as the engine notices them."""

from __future__ import annotations

from heartwheel.engine.runtime.driver.wall_clock import WallClock


def test_a_step_back_is_told_once_and_a_step_ahead_never() -> None:
    """What is told is how far the clock was set back, whatever time has passed meanwhile."""
    wall, passed = [1_000.0], [50.0]
    clock = WallClock(wall_s=lambda: wall[0], monotonic_s=lambda: passed[0])
    assert clock.set_back_s() == 0
    wall[0], passed[0] = wall[0] - 30 + 0.25, passed[0] + 0.25
    assert clock.set_back_s() == 30
    assert clock.set_back_s() == 0
    wall[0] += 60
    assert clock.set_back_s() == 0
    wall[0] -= 5
    assert clock.set_back_s() == 5
