"""What a state is made of: text of seven bits, columns as differences, ids in blocks, rows by fingerprint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heartwheel.engine.shard.arrays import read_columns, write_columns
from heartwheel.engine.shard.fingerprints import FingerprintIndex, find_few
from heartwheel.engine.shard.frame import decode_section, encode_section
from heartwheel.engine.shard.seven_bits import to_bytes, to_text
from heartwheel.engine.shard.tables import member_table
from heartwheel.engine.shard.text import BLOCK_ROWS, TextTable

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.binary(max_size=300))
def test_bytes_survive_as_ascii(data: bytes) -> None:
    """Any bytes come back from text of one byte a character, which is an eighth of a byte longer for each."""
    text = to_text(data)
    assert text.isascii()
    assert len(text) == -(-len(data) * 8 // 7)
    assert to_bytes(text) == data


@given(st.binary(max_size=300), st.integers(1, 50), st.booleans())
def test_sections_survive(data: bytes, times: int, compressed: bool) -> None:  # noqa: FBT001 - drawn
    """A section comes back whether or not it could be made smaller."""
    assert decode_section(encode_section(data * times, compressed=compressed)) == data * times


@given(
    st.lists(INT64),
    st.lists(st.integers(-(2**31), 2**31 - 1)),
    st.lists(st.integers(-128, 127)),
    st.lists(st.integers(0, 100_000).map(lambda step: 1_795_239_789_000 + step)),
)
def test_columns_survive(whole: list[int], ints: list[int], small: list[int], times: list[int]) -> None:
    """Columns of every type and range come back with their values and their type."""
    columns: dict[str, NDArray[Any]] = {
        "whole": np.array(whole, np.int64),
        "ints": np.array(ints, np.int32),
        "small": np.array(small, np.int8),
        "times": np.array(times, np.int64),
    }
    again = read_columns(write_columns(columns))
    for name, column in columns.items():
        assert again[name].dtype == column.dtype
        assert again[name].tolist() == column.tolist()


@pytest.mark.parametrize(("span", "bytes_a_row"), [(0, 0), (255, 1), (3_000, 2), (100_000, 4), (2**40, 8)])
def test_a_column_takes_what_its_span_needs(span: int, bytes_a_row: int) -> None:
    """Times near each other take the bytes of their distance, however far from zero they are."""
    column = 1_795_239_789_000 + np.arange(1_000, dtype=np.int64) * span // 999
    assert 0 <= len(write_columns({"c": column})) - bytes_a_row * 1_000 < 50


_rows = st.integers(0, 3 * BLOCK_ROWS)


@given(
    st.lists(st.lists(st.tuples(_rows, st.text(max_size=3), st.binary(max_size=3)), max_size=20), max_size=4),
    st.booleans(),
)
def test_text_is_what_was_written_last(batches: list[list[tuple[int, str, bytes]]], at_once: bool) -> None:  # noqa: FBT001 - drawn
    """Rows written over several encodings come back as last written, and those never written are empty."""
    table, model = TextTable(), dict[int, tuple[str, bytes]]()
    for batch in batches:
        distinct = {row: (row_id, detail) for row, row_id, detail in batch}
        if at_once and distinct:
            ids, details = zip(*distinct.values(), strict=True)
            table.write_many(np.array(list(distinct)), list(ids), list(details))
        for row, (row_id, detail) in () if at_once else distinct.items():
            table.write(row, row_id, detail)
        model |= distinct
        table = TextTable(*table.encode())
    rows = list(range(3 * BLOCK_ROWS + 2))
    assert table.read(rows) == [model.get(row, ("", b"")) for row in rows]
    kept = sorted(model, reverse=True)
    table.keep(np.array(kept, np.intp))
    assert table.read(range(len(kept))) == [model[row] for row in kept]


def test_one_row_changes_one_block() -> None:
    """Whoever writes one row pays for its block alone: the text of all others is the same."""
    table = TextTable()
    for row in range(4 * BLOCK_ROWS):
        table.write(row, f"member-{row}", b"{}")
    before = table.encode()[0]
    table = TextTable(*table.encode())
    table.write(BLOCK_ROWS, "another", b"{}")
    after = table.encode()[0]
    shared = len(before) // 4 - 100
    assert before[-2 * shared :] == after[-2 * shared :]
    assert before[100 : 100 + shared // 2] in after


@given(st.lists(INT64.map(lambda mark: mark & ~0xFF | mark & 1), unique=True), st.lists(INT64))
def test_fingerprints_are_found_by_all_that_have_one(marks: list[int], strangers: list[int]) -> None:
    """Every row is found by its fingerprint however many fall on one place, and strangers and zero by nobody."""
    column = np.array(marks, np.int64)
    index = FingerprintIndex(column)
    asked = np.array([*marks, *strangers, 0], np.int64)
    row_of = {mark: row for row, mark in enumerate(marks) if mark}
    assert index.find(asked).tolist() == [row_of.get(mark, -1) for mark in asked.tolist()]
    for few in (asked[::7], asked[:0]):
        assert find_few(column, few).tolist() == [row_of.get(mark, -1) for mark in few.tolist()]


def test_rows_in_a_row_are_written_at_once_as_one_by_one() -> None:
    """A thousand rows over the bounds of blocks, of which some are taken again, come back from both ways the same."""
    rows = np.array([3, 4, 5, *range(BLOCK_ROWS - 7, 3 * BLOCK_ROWS + 5), 1])
    ids, details = [f"m{row}" for row in rows], [b"%d" % row for row in rows]
    at_once, one_by_one = TextTable(), TextTable()
    at_once.write_many(rows, ids, details)
    for row, row_id, detail in zip(rows.tolist(), ids, details, strict=True):
        one_by_one.write(row, row_id, detail)
    assert at_once.encode() == one_by_one.encode()


def test_rows_are_taken_many_at_once_as_one_by_one() -> None:
    """Free rows come first, in the same order, and every column of a new one has its initial value."""
    many, single = member_table(), member_table()
    for table in (many, single):
        table.allocate_many(40)
        table["group"][:] = 7
        for row in (3, 30, 5):
            table.release(row)
    assert many.allocate_many(50).tolist() == [single.allocate() for _ in range(50)]
    assert {name: column.tolist() for name, column in many.dump().items()} == {
        name: column.tolist() for name, column in single.dump().items()
    }
    assert many.allocate_many(0).tolist() == []
