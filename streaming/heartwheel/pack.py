"""Packs: how many records travel through the shuffle as one.

The map side turns an Arrow batch of Kafka records into one pack a shard: each distinct value once, and for every record
a reference to it, its append time and its offset. A member's heartbeats are mostly the same bytes, so a backlog shrinks
to a few bytes a record before the shuffle, which is the dearest part of the way. The format lives only between two
stages of one batch and is never stored.

Layout, little endian: the header, then `fingerprint` int64 and `body_end` int64 per distinct value, `entry` uint32,
`delay` uint32 (ms after `base_ms`) and `step` uint32 (after `base_offset`) per record, then the bodies end to end.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_HEADER: Final = struct.Struct("<iiiqqq")
_SPAN_MAX: Final = 2**32 - 1


class Pack(NamedTuple):
    """Hold the records of one source partition that belong to one shard, in the order of the log.

    Args:
        partition: the partition of the heartbeat topic.
        fingerprints: int64 (entries,), of the distinct values; 0 where the value is not a heartbeat.
        bodies: the distinct values, in the order of `fingerprints`.
        entry: intp (records,), which distinct value a record has.
        append_ms: int64 (records,), the records' append times, epoch ms.
        offset: int64 (records,), the records' offsets.
    """

    partition: int
    fingerprints: NDArray[np.int64]
    bodies: Bodies
    entry: NDArray[np.intp]
    append_ms: NDArray[np.int64]
    offset: NDArray[np.int64]


class Bodies:
    """Give the distinct values of a pack by index, without cutting up those that nobody asks for."""

    __slots__ = ("_buffer", "_ends")

    def __init__(self, buffer: memoryview, ends: NDArray[np.int64]) -> None:
        self._buffer = buffer
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> bytes:
        start = self._ends[index - 1] if index else 0
        return bytes(self._buffer[start : self._ends[index]])


def encode_packs(
    partition: int,
    fingerprints: NDArray[np.int64],
    bodies: pa.Array,
    entry: NDArray[np.intp],
    append_ms: NDArray[np.int64],
    offset: NDArray[np.int64],
) -> list[bytes]:
    """Encode the records of one shard, cut where append times or offsets span more than 32 bits.

    Args:
        partition: the partition of the heartbeat topic.
        fingerprints: int64 (entries,).
        bodies: large binary array (entries,).
        entry: (records,) indices into the two above.
        append_ms: int64 (records,) epoch ms.
        offset: int64 (records,), ascending.
    """
    base_ms, base_offset = int(append_ms.min()), int(offset[0])
    if len(entry) > 1 and (int(append_ms.max()) - base_ms > _SPAN_MAX or int(offset[-1]) - base_offset > _SPAN_MAX):
        half = len(entry) // 2
        halves = (slice(None, half), slice(half, None))
        return [
            pack
            for part in halves
            for pack in encode_packs(partition, fingerprints, bodies, entry[part], append_ms[part], offset[part])
        ]
    _, ends, data = bodies.buffers()
    ends_at = np.frombuffer(ends, np.int64)[bodies.offset : bodies.offset + len(bodies) + 1]
    start = int(ends_at[0])
    return [
        b"".join(
            (
                _HEADER.pack(partition, len(entry), len(bodies), base_ms, base_offset, int(ends_at[-1]) - start),
                np.ascontiguousarray(fingerprints, "<i8").data,
                (ends_at[1:] - start).astype("<i8").data,
                entry.astype("<u4").data,
                (append_ms - base_ms).astype("<u4").data,
                (offset - base_offset).astype("<u4").data,
                b"" if data is None else memoryview(data)[start : int(ends_at[-1])],
            )
        )
    ]


def decode_pack(payload: bytes) -> Pack:
    """Decode what `encode_packs` made."""
    partition, records, entries, base_ms, base_offset, size = _HEADER.unpack_from(payload)
    at = _HEADER.size

    def take(dtype: str, count: int) -> NDArray[np.int64]:
        nonlocal at
        array = np.frombuffer(payload, dtype, count, at)
        at += array.nbytes
        return array

    fingerprints, ends = take("<i8", entries), take("<i8", entries)
    entry, delay, step = take("<u4", records), take("<u4", records), take("<u4", records)
    bodies = Bodies(memoryview(payload)[at : at + size], ends)
    return Pack(
        partition,
        fingerprints,
        bodies,
        entry.astype(np.intp),
        delay.astype(np.int64) + base_ms,
        step.astype(np.int64) + base_offset,
    )
