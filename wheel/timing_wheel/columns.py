"""Columns of handles and deadlines that callers pass in, checked once.

All other modules work on int64 arrays of equal length whose values are in range.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]

NEVER: Final = 2**63 - 1
"""Deadline of a handle that is not filed, in milliseconds."""

TIME_MS_MAX: Final = 2**62 - 1
"""Latest accepted deadline and clock, in milliseconds: sums of two of them still fit an int64."""

HANDLE_MAX: Final = 2**31 - 1
"""Largest accepted handle: buckets store handles as int32."""


def as_handles(handles: ArrayLike) -> Ints:
    """Return a column of handles as int64.

    Args:
        handles: integers in `0..HANDLE_MAX`, one dimension.

    Raises:
        TypeError: the column does not consist of integers.
        ValueError: it does not have one dimension, or a handle is out of range.
    """
    column = _as_ints(handles, "handles")
    if column.size and (column.min() < 0 or column.max() > HANDLE_MAX):
        bad = column[(column < 0) | (column > HANDLE_MAX)]
        raise ValueError(f"handle {bad[0]} is out of range; handles are small dense integers in 0..{HANDLE_MAX}")
    return column


def as_deadlines(deadlines_ms: ArrayLike, *, length: int) -> Ints:
    """Return a column of deadlines as int64.

    Args:
        deadlines_ms: integers up to `TIME_MS_MAX`, milliseconds, one dimension.
        length: the number of handles.

    Raises:
        TypeError: the column does not consist of integers.
        ValueError: its length differs from the handles', or a deadline is out of range.
    """
    column = _as_ints(deadlines_ms, "deadlines_ms")
    if column.size != length:
        raise ValueError(f"{length} handles came with {column.size} deadlines; give one deadline per handle")
    if column.size and column.max() > TIME_MS_MAX:
        raise ValueError(
            f"deadline {column.max()} ms is out of range, at most {TIME_MS_MAX}; cancel a handle that never expires"
        )
    return column


def _as_ints(values: ArrayLike, name: str) -> Ints:
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"`{name}` has {column.ndim} dimensions; give a column of one dimension")
    if column.size == 0:
        return np.empty(0, np.int64)
    # NumPy would truncate a float column silently, which moves deadlines.
    if column.dtype.kind not in "iu":
        raise TypeError(f"`{name}` is a column of {column.dtype}; give integers")
    if column.dtype == np.uint64 and column.max() > NEVER:
        raise ValueError(f"`{name}` holds {column.max()}, which does not fit 64 signed bits")
    return column.astype(np.int64, copy=False)
