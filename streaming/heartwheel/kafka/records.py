"""Read the records of a batch (magic 2), several times as fast as kafka-python does.

Whoever shows or counts verdicts gets a hundred thousand a second where many members fall silent at once
(tests/benchmarks/readers_bench.py), and each has six headers that nobody here looks at: they are passed over, unless
somebody wants them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafka.errors import CorruptRecordError

Headers = list[tuple[str, bytes | None]]

_VARINT_BYTES_MAX: Final = 10


class FetchedRecord(NamedTuple):
    """One record, with the names that kafka-python's fetcher looks for.

    Args:
        size_in_bytes: bytes after its length.
        timestamp_type: 1 if that is the broker's append time, 0 if the producer's create time.
        value: its value; `None` is a tombstone.
        headers: its headers; `None` if they were passed over.
    """

    size_in_bytes: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None

    @property
    def checksum(self) -> None:
        """The batch has one for all."""

    def validate_crc(self) -> bool:
        """Return whether its checksum is right: the batch's was looked at."""
        return True


class BatchStamp(NamedTuple):
    """What the records of a batch have in common.

    Args:
        first_ms: create time of the first, epoch ms.
        append_ms: append time of all, epoch ms; `None` if the topic keeps create times.
    """

    base_offset: int
    first_ms: int
    append_ms: int | None


def read_records(data: bytes, count: int, stamp: BatchStamp, *, headers: bool) -> Iterator[FetchedRecord]:
    """Read the records of a batch, one by one.

    Args:
        data: they alone, unpacked.

    Raises:
        CorruptRecordError: a length is invalid, or the records differ in number or length from their header.
    """
    at = 0
    base_offset, first_ms, append_ms = stamp
    kind = int(append_ms is not None)
    try:
        for _ in range(count):
            size, at = _varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise CorruptRecordError(f"a record of {size} bytes, where {len(data) - at} are left")
            time_delta, at = _varint(data, at + 1)  # after the attributes, of which a record has none
            offset_delta, at = _varint(data, at)
            key, at = _bytes(data, at, end)
            value, at = _bytes(data, at, end)
            found = None
            if headers:
                found, at = _headers(data, at, end)
                if at != end:
                    raise CorruptRecordError(f"a record of {size} bytes, of which {end - at} are left over")
            at_ms = first_ms + time_delta if append_ms is None else append_ms
            yield FetchedRecord(size, base_offset + offset_delta, at_ms, kind, key, value, found)
            at = end
    except (IndexError, UnicodeDecodeError) as error:
        raise CorruptRecordError(f"the records of a batch cannot be read: {error}") from error
    if at != len(data):
        raise CorruptRecordError(f"{len(data) - at} bytes after the last record of a batch")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    second = data[at + 1]
    if second < 0x80:
        value = byte & 0x7F | second << 7
        return (value >> 1) ^ -(value & 1), at + 2
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise CorruptRecordError(f"a number of more than {_VARINT_BYTES_MAX} bytes")


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = _varint(data, at)
    if length < 0:
        return None, at
    stop = at + length
    if stop > end:
        raise CorruptRecordError(f"{length} bytes in a record that has {end - at} left")
    return data[at:stop], stop


def _headers(data: bytes, at: int, end: int) -> tuple[Headers, int]:
    count, at = _varint(data, at)
    found: Headers = []
    for _ in range(count):
        name, at = _bytes(data, at, end)
        if name is None:
            raise CorruptRecordError("a header without a name")
        value, at = _bytes(data, at, end)
        found.append((name.decode(), value))
    if count < 0:
        raise CorruptRecordError(f"a record of {count} headers")
    return found, at
