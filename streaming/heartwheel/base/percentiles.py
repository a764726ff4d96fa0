"""Percentiles of measured values."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

HUNDRED: Final = 100
"""Of fewer values the 99th percentile is the greatest of them, and is called so."""

Number = TypeVar("Number", int, float)


def percentile(values: Collection[Number], share: float) -> Number:
    """Return the nearest rank, so that every percentile is a value that was measured; 0 of none.

    Args:
        values: in any order.
        share: from 0 to 1; 0.5 is the median, 1 the greatest.
    """
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0
