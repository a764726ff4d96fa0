"""Statistics of lists of numbers."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from heartwheel.base.percentiles import percentile


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How long after their deadlines expirations were in Kafka, ms; all zero if there are none.

    Args:
        p50: median.
        p99: 99th percentile.
        max: the longest.
        count: the number of expirations.
        objective: the bound of promise P2 (`heartwheel.wire.lateness`), which it should stay under; `None` while the
            job's settings are not known.
    """

    p50: int
    p99: int
    max: int
    count: int
    objective: int | None


def lateness_of(late_ms: Collection[int], objective_ms: int | None) -> Lateness:
    """Return the statistics of latenesses."""
    ordered = sorted(late_ms)
    return Lateness(
        p50=percentile(ordered, 0.5),
        p99=percentile(ordered, 0.99),
        max=ordered[-1] if ordered else 0,
        count=len(ordered),
        objective=objective_ms,
    )
