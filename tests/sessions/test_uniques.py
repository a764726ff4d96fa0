"""The different values of a column, with values that share their lower bits."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.sessions.packer import uniques

pytestmark = pytest.mark.hypothesis

VALUES = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2) | st.integers(0, 5).map(lambda high: (high << 40) + 3)


@given(st.lists(VALUES, max_size=60))
def test_values_are_told_apart_in_the_order_of_their_first_places(values: list[int]) -> None:
    """Values with the same lower bits are different ones, wherever they stand."""
    distinct, codes, first = uniques(pa.array(values, pa.int64()))
    expected = list(dict.fromkeys(values))
    assert distinct.tolist() == expected
    assert [expected[code] for code in codes] == values
    assert first.tolist() == [values.index(value) for value in expected]
