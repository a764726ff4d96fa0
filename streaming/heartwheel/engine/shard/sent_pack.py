"""The encoding of packs on the way from the map side to their shard: few bytes a record at little cost.

Every byte is copied some ten times between the two Python workers: through Arrow, rows of the JVM, the shuffle's files,
a sort, and Arrow again. So times and offsets are sent as differences in the narrowest integers that hold them, entries
that only count up are not sent at all, and the bodies are compressed, which shrinks them tenfold. They are unpacked
only when one is needed, which is never the case for a member that the shard knows.

Layout, little endian: the header, `fingerprint` int64 per distinct value, then per record its `entry`, the difference
to the time of the record before, and that to its offset, each as wide as the header says; then a block of zstd with the
length of each body, uint32, and the bodies end to end. Short blocks are not compressed.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.engine.shard.pack import Bodies, Pack

_HEADER: Final = struct.Struct("<iiiiqqqq3c5x")
"""It is padded to a multiple of eight bytes, so that what follows is aligned."""

_CODEC: Final = "zstd"
_COMPRESSED_FROM: Final = 1024
"""Shorter blocks are not compressed: zstd has a fixed cost."""

_COUNTS_UP: Final = b"-"
"""The type of entries that are 0, 1, 2, and so on: there are as many records as values, in their order."""

_UNSIGNED: Final = (np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))
_SIGNED: Final = np.dtype("<i8")
_TYPES: Final = {dtype.char.encode(): dtype for dtype in (*_UNSIGNED, _SIGNED)}


class _PackedBodies(Bodies):
    """Bodies that are unpacked when the first of them is needed.

    Args:
        block: their lengths and their bytes, as they were sent.
        size: bytes of the block, unpacked.
    """

    __slots__ = ("_block", "_count", "_size")

    def __init__(self, block: memoryview, count: int, size: int) -> None:
        super().__init__(b"", np.empty(0, np.int64))
        self._block, self._count, self._size = block, count, size

    def __len__(self) -> int:
        return self._count

    @property
    def raw(self) -> tuple[bytes | memoryview, NDArray[np.int64]]:
        """The values end to end, and where each ends."""
        if len(self._ends) < self._count:
            block: bytes | memoryview = self._block
            if len(block) < self._size:
                block = pa.decompress(block, self._size, codec=_CODEC, asbytes=True)
            self._ends = np.cumsum(np.frombuffer(block, "<u4", self._count), dtype=np.int64)
            self._buffer = block[4 * self._count :]
        return self._buffer, self._ends


def encode_sent(
    partition: int,
    fingerprints: NDArray[np.int64],
    bodies: pa.LargeBinaryArray,
    entry: NDArray[np.signedinteger],
    append_ms: NDArray[np.int64],
    offset: NDArray[np.int64],
) -> bytes:
    """Encode the records of one shard.

    Args:
        fingerprints: int64 (entries,).
        bodies: large binary array, the values of the first of the entries.
        entry: (records,) indices into the two above.
        append_ms: int64 (records,) epoch ms, in any order.
        offset: int64 (records,), in any order.
    """
    block, size = _block(bodies)
    times, offsets = _narrow(np.diff(append_ms, prepend=append_ms[:1])), _narrow(np.diff(offset, prepend=offset[:1]))
    counts_up = len(entry) == len(fingerprints) and np.array_equal(entry, np.arange(len(entry), dtype=entry.dtype))
    entries = np.empty(0, _UNSIGNED[0]) if counts_up else _narrow(entry)
    header = _HEADER.pack(
        partition,
        len(append_ms),
        len(fingerprints),
        len(bodies),
        int(append_ms[0]),
        int(offset[0]),
        size,
        len(block),
        _COUNTS_UP if counts_up else _type_of(entries),
        _type_of(times),
        _type_of(offsets),
    )
    columns = (np.ascontiguousarray(fingerprints, "<i8"), entries, times, offsets)
    return b"".join((header, *(column.data for column in columns), block))


def decode_sent(payload: bytes) -> Pack:
    """Decode what `encode_sent` returned."""
    partition, records, entries, with_bytes, base_ms, base_offset, size, packed, *types = _HEADER.unpack_from(payload)
    at = _HEADER.size

    def take(dtype: np.dtype[np.integer], count: int) -> NDArray[np.integer]:
        nonlocal at
        array = np.frombuffer(payload, dtype, count, at)
        at += array.nbytes
        return array

    fingerprints = np.asarray(take(_SIGNED, entries), np.int64)
    entry = np.arange(records) if types[0] == _COUNTS_UP else take(_TYPES[types[0]], records).astype(np.intp)
    append_ms = np.cumsum(take(_TYPES[types[1]], records), dtype=np.int64)
    offset = np.cumsum(take(_TYPES[types[2]], records), dtype=np.int64)
    bodies = _PackedBodies(memoryview(payload)[at : at + packed], with_bytes, size)
    return Pack(partition, fingerprints, bodies, entry, append_ms + base_ms, offset + base_offset)


def encode_relayed(feed: str, pack: bytes) -> bytes:
    """Encode a pack of records that a feed has relayed."""
    return msgspec.msgpack.encode((feed, pack))


def decode_relayed(payload: bytes) -> tuple[str, Pack]:
    """Return the feed's name and its records with the times in them, from what `encode_relayed` returned."""
    feed, pack = msgspec.msgpack.decode(payload, type=tuple[str, bytes])
    return feed, decode_sent(pack)


def _block(bodies: pa.LargeBinaryArray) -> tuple[bytes, int]:
    """Return the lengths and the bytes of some bodies as they are sent, and their unpacked size in bytes."""
    _, offsets, data = bodies.buffers()
    ends = np.frombuffer(offsets, np.int64)[bodies.offset : bodies.offset + len(bodies) + 1]
    contents = b"" if data is None else memoryview(data)[int(ends[0]) : int(ends[-1])]
    block = b"".join((np.diff(ends).astype("<u4").data, contents))
    if len(block) < _COMPRESSED_FROM:
        return block, len(block)
    packed: bytes = pa.compress(block, codec=_CODEC, asbytes=True)
    return (packed if len(packed) < len(block) else block), len(block)


def _narrow(values: NDArray[np.signedinteger]) -> NDArray[np.integer]:
    """Return integers in the narrowest type that holds them; any negative one makes all of them wide."""
    if len(values) and int(values.min()) >= 0:
        most = int(values.max())
        for dtype in _UNSIGNED:
            if most <= np.iinfo(dtype).max:
                return values.astype(dtype)
    return values.astype(_SIGNED)


def _type_of(column: NDArray[np.integer]) -> bytes:
    return column.dtype.char.encode()
