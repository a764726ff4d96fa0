"""The fast reader of records reads what kafka-python reads, and refuses what is no batch."""

from __future__ import annotations

import lz4.frame  # type: ignore[import-untyped]  # has no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from heartwheel.kafka.records import BatchStamp, read_records

BASE = DefaultRecordBatch.HEADER_STRUCT.size

headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=200)), max_size=4)
records = st.lists(
    st.tuples(
        st.integers(0, 2**41),
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=20_000),
        headers,
    ),
    min_size=1,
    max_size=20,
)


def batch_of(written: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> bytes:
    """Let kafka-python write a batch."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 24,
    )
    for offset, (time_ms, key, value, named) in enumerate(written):
        assert builder.append(offset, time_ms, key, value, named)
    return bytes(builder.build())


@given(records, st.booleans())
def test_records_are_those_that_the_library_reads(
    written: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    whole: bool,  # noqa: FBT001
) -> None:
    """Key, value, time, offset and size of each record are the library's, with headers or without a look at them."""
    data = batch_of(written)
    theirs = DefaultRecordBatch(data)
    stamp = BatchStamp(theirs.base_offset, theirs.first_timestamp, None)
    ours = list(read_records(data[BASE:], theirs.records_count, stamp, headers=whole))
    for mine, other in zip(ours, theirs, strict=True):
        expected = (other.size_in_bytes, other.offset, other.timestamp, other.key, other.value)
        assert (mine.size_in_bytes, mine.offset, mine.timestamp, mine.key, mine.value) == expected
        assert mine.headers == (other.headers if whole else None)


def test_append_time_is_that_of_the_batch() -> None:
    """On a topic with append time all records of a batch have it, whatever their producer wrote."""
    data = batch_of([(5, b"k", b"v", []), (9, b"k", b"w", [])])
    read = list(read_records(data[BASE:], 2, BatchStamp(100, 5, 77), headers=False))
    assert [(record.offset, record.timestamp, record.timestamp_type) for record in read] == [(100, 77, 1), (101, 77, 1)]


@given(st.binary(max_size=400), st.integers(0, 5), st.booleans())
def test_noise_is_refused_by_name(data: bytes, count: int, whole: bool) -> None:  # noqa: FBT001
    """Bytes that are no records are refused, and nothing but that is raised."""
    try:
        for record in read_records(data, count, BatchStamp(0, 0, None), headers=whole):
            assert record.size_in_bytes <= len(data)
    except CorruptRecordError:
        return


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_batch_that_is_cut_is_refused(cut: int) -> None:
    """A batch without its last bytes is refused, and so is one with bytes left over or packed ones."""
    data = batch_of([(5, b"key", b"value" * 20, [("name", b"text")])])[BASE:]
    for broken in (data[:-cut], data + b"\0" * cut, lz4.frame.compress(data)):
        with pytest.raises(CorruptRecordError):
            list(read_records(broken, 1, BatchStamp(0, 0, None), headers=True))
