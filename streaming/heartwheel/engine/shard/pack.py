"""Packs: the records of one partition and one shard together, each distinct value once.

The map side turns an Arrow batch of Kafka records into one pack a shard: each distinct value once, and for every record
a reference to it, its append time and its offset. A member's heartbeats mostly have the same bytes, so a backlog
shrinks to a few bytes a record before the shuffle, which is the most expensive part.
`heartwheel.engine.shard.sent_pack` describes how packs are sent. Heartbeats that a shard got lately come without their
bytes (`heartwheel.engine.shard.heartbeats`).

This module encodes the records that wait in a shard's state for their time, with all their bytes. Layout, little
endian: the header, then `fingerprint` int64 and `body_end` int64 per distinct value, `entry` uint32, `delay` uint32 (ms
after `base_ms`) and `step` uint32 (after `base_offset`) per record, then the bodies end to end.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_HEADER: Final = struct.Struct("<iiiiqqq")
_SPAN_MAX: Final = 2**32 - 1


class Pack(NamedTuple):
    """The records of one source partition that belong to one shard, in the order of the log.

    Args:
        fingerprints: int64 (entries,), of the distinct values; 0 where the value is not a heartbeat.
        bodies: the bytes of the first of the distinct values, in the order of `fingerprints`; the others, all of them
            heartbeats, come without their bytes.
        entry: intp (records,), the distinct value of each record; int32 before it is encoded.
        append_ms: int64 (records,), the records' effective append times, epoch ms: ascending.
        offset: int64 (records,), the records' offsets: ascending, except for those of a feed that wait.
    """

    partition: int
    fingerprints: NDArray[np.int64]
    bodies: Bodies
    entry: NDArray[np.intp]
    append_ms: NDArray[np.int64]
    offset: NDArray[np.int64]


class Bodies:
    """The distinct values of a pack by index; a value is only cut out when it is asked for.

    Args:
        buffer: the values end to end.
        ends: int64 (values,), where each ends.
    """

    __slots__ = ("_buffer", "_ends")

    def __init__(self, buffer: bytes | memoryview, ends: NDArray[np.int64]) -> None:
        self._buffer = buffer
        self._ends = ends

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Self:
        """Join values end to end."""
        ends = np.cumsum([len(value) for value in values], dtype=np.int64)
        return cls(b"".join(values), ends)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def raw(self) -> tuple[bytes | memoryview, NDArray[np.int64]]:
        """The values end to end, and where each ends."""
        return self._buffer, self._ends

    def take(self, indices: NDArray[np.intp]) -> list[bytes]:
        """Return some values.

        Args:
            indices: intp (n,).
        """
        buffer, all_ends = self.raw
        values = bytes(buffer)  # slicing bytes costs half of slicing a view
        starts = np.where(indices > 0, all_ends[indices - 1], 0)
        return [values[start:end] for start, end in zip(starts.tolist(), all_ends[indices].tolist(), strict=True)]

    def __getitem__(self, index: int) -> bytes:
        buffer, ends = self.raw
        start = ends[index - 1] if index else 0
        return bytes(buffer[start : ends[index]])


def encode_cut(pack: Pack) -> list[bytes]:
    """Encode a pack, split where append times or offsets span more than 32 bits."""
    return [encode_pack(part) for part in _cut(pack)]


def _cut(pack: Pack) -> list[Pack]:
    """Split a pack until its append times and offsets span less than 32 bits."""
    records = len(pack.entry)
    if records < 2 or max(int(np.ptp(pack.append_ms)), int(np.ptp(pack.offset))) <= _SPAN_MAX:
        return [pack]
    early = np.arange(records) < records // 2
    # Each half has only the values of its own records, because readers of a pack assume that every value has a record.
    return [*_cut(select(pack, early)), *_cut(select(pack, ~early))]


def encode_pack(pack: Pack) -> bytes:
    """Encode one pack; append times and offsets must span less than 32 bits."""
    # Relayed records are ordered by their times, and their offsets are not.
    base_ms, base_offset = int(pack.append_ms.min()), int(pack.offset.min())
    body, ends = pack.bodies.raw
    return b"".join(
        (
            _HEADER.pack(
                pack.partition, len(pack.entry), len(pack.fingerprints), len(ends), base_ms, base_offset, len(body)
            ),
            np.ascontiguousarray(pack.fingerprints, "<i8").data,
            ends.astype("<i8").data,
            pack.entry.astype("<u4").data,
            (pack.append_ms - base_ms).astype("<u4").data,
            (pack.offset - base_offset).astype("<u4").data,
            body,
        )
    )


def select(pack: Pack, records: NDArray[np.bool_]) -> Pack:
    """Return some records of a pack, in their order, with their values.

    Args:
        records: (records,), the records; at least one.
    """
    used, entry = np.unique(pack.entry[records], return_inverse=True)
    with_bytes = used[: np.searchsorted(used, len(pack.bodies))]
    return Pack(
        pack.partition,
        pack.fingerprints[used],
        Bodies.of(pack.bodies.take(with_bytes)),
        entry.astype(np.intp),
        pack.append_ms[records],
        pack.offset[records],
    )


def in_order_of_time(packs: Sequence[Pack]) -> Pack:
    """Join the packs of one feed's source, with their records sorted by time, then by offset.

    A feed relays events in an order of its own; everything else of a partition is ascending already. One pack that is
    in this order is returned unchanged: a step of a shard leaves it so, and a batch may have a thousand.

    Args:
        packs: at least one, all of the same source, with all their bytes.
    """
    if len(packs) == 1 and _is_in_order(packs[0]):
        return packs[0]
    sizes = np.cumsum([0, *(len(pack.fingerprints) for pack in packs)])
    entry = np.concatenate([pack.entry + at for pack, at in zip(packs, sizes[:-1].tolist(), strict=True)])
    append_ms = np.concatenate([pack.append_ms for pack in packs])
    offset = np.concatenate([pack.offset for pack in packs])
    order = np.lexsort((offset, append_ms))
    return Pack(
        packs[0].partition,
        np.concatenate([pack.fingerprints for pack in packs]),
        Bodies.of([value for pack in packs for value in pack.bodies.take(np.arange(len(pack.bodies)))]),
        entry[order].astype(np.intp),
        append_ms[order],
        offset[order],
    )


def _is_in_order(pack: Pack) -> bool:
    later = np.diff(pack.append_ms)
    return bool(((later > 0) | ((later == 0) & (np.diff(pack.offset) > 0))).all())


def decode_pack(payload: bytes) -> Pack:
    """Decode what `encode_cut` returned."""
    partition, records, entries, with_bytes, base_ms, base_offset, size = _HEADER.unpack_from(payload)
    at = _HEADER.size

    def take(dtype: str, count: int) -> NDArray[np.int64]:
        nonlocal at
        array = np.frombuffer(payload, dtype, count, at)
        at += array.nbytes
        return array

    fingerprints, ends = take("<i8", entries), take("<i8", with_bytes)
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
