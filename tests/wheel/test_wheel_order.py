"""The order of verdicts is by deadline, then by handle, whichever way it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing_wheel import HANDLE_MAX, TIME_MS_MAX
from timing_wheel.ordering import sort_by_deadline


@given(
    rows=st.lists(
        st.tuples(st.integers(0, HANDLE_MAX), st.one_of(st.integers(0, 3), st.integers(-(2**62), TIME_MS_MAX))),
        unique_by=lambda row: row[0],
    )
)
def test_order_is_by_deadline_then_handle(rows: list[tuple[int, int]]) -> None:
    """Close deadlines and deadlines at both ends of time come out as Python would sort them."""
    handles = np.array([handle for handle, _ in rows], np.int64)
    deadlines = np.array([deadline for _, deadline in rows], np.int64)
    expected = [handle for handle, _ in sorted(rows, key=lambda row: (row[1], row[0]))]
    assert sort_by_deadline(handles, deadlines).tolist() == expected


@pytest.mark.parametrize("bits", [30, 31, 32, 33, 34, 61, 62])
def test_the_packed_key_ends_where_it_would_overflow(bits: int) -> None:
    """One bit before, at and after the width at which the key no longer fits, the order is the same."""
    handles = np.array([HANDLE_MAX, 1, 0, HANDLE_MAX - 1])
    deadlines = np.array([2**bits - 1, 0, 2**bits - 1, 0])
    assert sort_by_deadline(handles, deadlines).tolist() == [1, HANDLE_MAX - 1, 0, HANDLE_MAX]
