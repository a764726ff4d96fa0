"""The order of verdicts: by deadline, then by handle, independent of their buckets."""

from __future__ import annotations

import numpy as np

from timing_wheel.columns import Ints


def sort_by_deadline(handles: Ints, deadlines_ms: Ints) -> Ints:
    """Sort handles by their deadline, and by handle where deadlines are equal.

    Args:
        handles: the handles, not negative.
        deadlines_ms: one deadline per handle, milliseconds.
    """
    if len(handles) < 2:
        return handles
    first = int(deadlines_ms.min())
    handle_bits = int(handles.max()).bit_length()
    if (int(deadlines_ms.max()) - first).bit_length() + handle_bits > 62:
        return handles[np.lexsort((handles, deadlines_ms))]
    # One key of both sorts several times faster than two columns; tests check that both ways give the same order.
    keys = ((deadlines_ms - first) << handle_bits) | handles
    keys.sort()
    return keys & ((1 << handle_bits) - 1)
