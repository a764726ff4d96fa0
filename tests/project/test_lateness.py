"""Promise P2 has one formula."""

from __future__ import annotations

from heartwheel.settings import Settings
from heartwheel.settings.objective import lateness_objective_ms
from heartwheel.wire.lateness import lateness_bound_ms


def test_the_bound_is_a_tick_a_trigger_a_batch_and_a_tick_of_the_wheel() -> None:
    """A batch that outlasts the trigger counts twice: the one that just began, and the one that reads the tick."""
    quick = lateness_bound_ms(tick_interval_ms=200, trigger_interval_ms=500, wheel_tick_ms=100, batch_ms=300)
    slow = lateness_bound_ms(tick_interval_ms=200, trigger_interval_ms=500, wheel_tick_ms=100, batch_ms=900)
    assert (quick, slow) == (200 + 100 + 500 + 300, 200 + 100 + 900 + 900)
    assert lateness_objective_ms(Settings()) == 625
