"""How late a verdict may be by a configuration: promise P2."""

from __future__ import annotations

from heartwheel.settings.models import Settings
from heartwheel.wire.lateness import lateness_bound_ms


def lateness_objective_ms(settings: Settings, *, batch_ms: int | None = None) -> int:
    """Return the bound of a configuration, ms.

    Args:
        settings: the checked configuration.
        batch_ms: how long a batch takes, ms; left out, as long as the trigger interval.
    """
    return lateness_bound_ms(
        tick_interval_ms=settings.engine.tick_interval_ms,
        trigger_interval_ms=settings.engine.trigger_interval_ms,
        wheel_tick_ms=settings.wheel.tick_ms,
        batch_ms=batch_ms,
    )
