"""The table of decoded values: exact whatever the hashes are, bounded, and of use when its bound is too small."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heartwheel.engine.heartbeats.value_table import PROBES_MAX, UNKNOWN, ValueTable


def _column(values: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(values, pa.large_binary())


def _hashes(values: list[bytes]) -> NDArray[np.int64]:
    return np.array([hash(value) for value in values], np.int64)


def _add(table: ValueTable, values: list[bytes], hashes: NDArray[np.int64] | None = None) -> None:
    """Remember values under shards and marks that follow from them."""
    marks = np.array([len(value) for value in values], np.int64)
    table.add(_hashes(values) if hashes is None else hashes, _column(values), (marks % 7).astype(np.int16), marks)


def _known(table: ValueTable, values: list[bytes], hashes: NDArray[np.int64] | None = None) -> list[bool]:
    """Look values up, and hold that what is found is what was remembered of just these bytes."""
    codes = table.find(_hashes(values) if hashes is None else hashes, _column(values))
    for value, code in zip(values, codes.tolist(), strict=True):
        if code != UNKNOWN:
            assert (table.fingerprints[code], table.shards[code]) == (len(value), len(value) % 7)
            assert table.values()[code].as_py() == value
    return [code != UNKNOWN for code in codes.tolist()]


@given(
    st.lists(st.lists(st.tuples(st.binary(max_size=3), st.integers(-3, 3)), max_size=12), max_size=8),
    st.integers(1, 8),
)
def test_what_is_found_is_what_was_remembered_whatever_the_hashes(
    rounds: list[list[tuple[bytes, int]]], entries_max: int
) -> None:
    """Hashes that collide, or are zero, or that one value has twice, lose values at worst and never confuse them."""
    table = ValueTable(entries_max=entries_max, bytes_max=16)
    for pairs in rounds:
        distinct = dict(pairs)
        values, hashes = list(distinct), np.array(list(distinct.values()), np.int64)
        found = _known(table, values, hashes)
        new = [i for i, known in enumerate(found) if not known]
        _add(table, [values[i] for i in new], hashes[new])
        assert len(table) <= entries_max
        assert table.nbytes <= 16


def test_all_are_found_again_after_the_table_has_grown() -> None:
    """A table with room finds every value of a hundred thousand, one batch after the other."""
    values = [b"value %d" % i for i in range(100_000)]
    table = ValueTable(entries_max=100_000, bytes_max=1 << 24)
    for start in range(0, len(values), 30_000):
        _add(table, values[start : start + 30_000])
    assert all(_known(table, values))


def test_every_one_of_many_is_compared() -> None:
    """Of five thousand that are looked up together, each that has only the hash of a held value is told from it."""
    values = [b"value %d" % i for i in range(5000)]
    table = ValueTable(entries_max=5000, bytes_max=1 << 20)
    _add(table, values)
    others = {7, 1023, 1024, 2500, 4999}
    asked = [b"other %d" % i if i in others else value for i, value in enumerate(values)]
    assert {i for i, known in enumerate(_known(table, asked, _hashes(values))) if not known} == others


def test_twice_the_bound_is_still_half_found() -> None:
    """A working set of twice the bound, read in a cycle, is half found in every round: it does not drive itself out."""
    values = [b"value %d" % i for i in range(2000)]
    table = ValueTable(entries_max=1000, bytes_max=1 << 20)
    found = []
    for _ in range(6):
        round_found = 0
        for start in range(0, len(values), 100):
            some = values[start : start + 100]
            known = _known(table, some)
            round_found += sum(known)
            _add(table, [value for value, is_known in zip(some, known, strict=True) if not is_known])
        found.append(round_found)
    assert min(found[1:]) >= 900


def test_values_that_are_gone_make_room() -> None:
    """A full table forgets what was not looked up for a while, so that the members of today are found."""
    yesterday, today = [b"old %d" % i for i in range(1000)], [b"new %d" % i for i in range(1000)]
    table = ValueTable(entries_max=1000, bytes_max=1 << 20)
    _add(table, yesterday)
    for _ in range(8):
        known = _known(table, today)
        _add(table, [value for value, is_known in zip(today, known, strict=True) if not is_known])
    assert all(_known(table, today))


@pytest.mark.parametrize("size", [1, 100])
def test_bytes_are_bounded_too(size: int) -> None:
    """Large values take their room by their size; one that is larger than the bound is never held."""
    table = ValueTable(entries_max=1000, bytes_max=1000)
    _add(table, [bytes([i]) * size for i in range(100)])
    assert len(table) == min(100, 1000 // size)
    _add(table, [b"x" * 1001])
    assert not any(_known(table, [b"x" * 1001]))


def test_prepared_hashes_cost_bounded_probes() -> None:
    """Thousands of values with one hash are one entry; the others are decoded anew and are not searched for."""
    values = [b"value %d" % i for i in range(5000)]
    table = ValueTable(entries_max=10_000, bytes_max=1 << 20)
    _add(table, values, np.full(len(values), 17, np.int64))
    assert len(table) == 1
    assert sum(_known(table, values, np.full(len(values), 17, np.int64))) == 1
    assert PROBES_MAX < 100
