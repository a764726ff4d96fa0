"""Promise P2 in one formula: how late after its deadline a verdict may be in Kafka."""

from __future__ import annotations


def lateness_bound_ms(
    *, tick_interval_ms: int, trigger_interval_ms: int, wheel_tick_ms: int, batch_ms: int | None = None
) -> int:
    """Return the longest time from a deadline until its verdict is in Kafka, ms.

    The next record of its partition proves a deadline, at most a tick interval later, rounded up to a tick of the
    wheel. The batch that reads that record begins with the next trigger, or when the batch before it has ended, and
    has written the verdict when it ends.

    Args:
        tick_interval_ms: `engine.tick_interval`.
        trigger_interval_ms: `engine.trigger_interval`.
        wheel_tick_ms: `wheel.tick`.
        batch_ms: how long a batch takes, ms; by default the trigger interval, as for a job that keeps its pace.
    """
    batch_ms = trigger_interval_ms if batch_ms is None else batch_ms
    return tick_interval_ms + wheel_tick_ms + max(trigger_interval_ms, batch_ms) + batch_ms
