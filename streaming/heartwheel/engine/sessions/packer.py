"""The map side: the distinct rows of a frame once, and of each event its time.

Most keys have the same values in every event. So of a frame of a million rows each shard gets the keys, the carried
values and the timeouts of its distinct rows, and twelve bytes an event. Rows are equal if a hash of all their columns
but the time is, which the JVM makes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.engine.runtime.map.frames import frames_of
from heartwheel.engine.runtime.map.packed import PackedRow, PayloadKind, packed_batch

FRAME_EVENTS_MAX: Final = 1 << 20
"""Most rows of a frame. The more, the more of them are of keys that the frame has already."""

UNTIMED_MS: Final = -(1 << 62)
"""Stands for the time of an event that brings none that can be believed: it counts as seen now."""

Ints = NDArray[np.int64]


class RowKind(enum.IntEnum):
    """What the JVM has found a row to be (`heartwheel.engine.sessions.plan`)."""

    EVENT = 0
    UNTIMED = 1
    TICK = 2
    UNKEYED = 3
    UNTIMEOUTED = 4


KIND_BITS: Final = 3
"""The lowest bits of the column `at` are the row's kind, the others its time: a column costs more than the shift."""


class SourceReading(msgspec.Struct, array_like=True):
    """What a frame shows of one partition of the source.

    Args:
        partition: its number; 0 where the whole source is one.
        newest_ms: the latest time of its events and ticks, epoch ms; `UNTIMED_MS` if none had one.
        spans: stretches of time without a silence of `outage` among its events, as (first, last), epoch ms.
        events: how many events there were.
        untimed: how many of them without a time, or with one in the future.
        unkeyed: rows without a key.
        untimeouted: rows without a valid timeout.
    """

    partition: int
    newest_ms: int
    spans: list[tuple[int, int]]
    events: int
    untimed: int
    unkeyed: int
    untimeouted: int


class EventPack(NamedTuple):
    """Events of one shard.

    Args:
        rows: the distinct rows: `row` (hash of all columns, if there are others than the key's), `key` (hash of the
            key), `timeout` and `reason` where there are such, then the columns of the key (`k0` and so on) and the
            carried ones (`c0`).
        owner: int32 (events,), the distinct row of each event.
        time_ms: int64 (events,), the time of each, epoch ms.
    """

    rows: pa.RecordBatch
    owner: NDArray[np.int32]
    time_ms: Ints

    def split(self, chosen: NDArray[np.bool_]) -> tuple[EventPack | None, EventPack | None]:
        """Return the chosen events and the others, each with the distinct rows that they need; `None` for no event.

        Args:
            chosen: bool (events,).
        """
        if chosen.all():
            return self, None
        if not chosen.any():
            return None, self
        return self._part(chosen), self._part(~chosen)

    def _part(self, chosen: NDArray[np.bool_]) -> EventPack:
        owner = self.owner[chosen]
        used = np.unique(owner)
        rows = self.rows.take(pa.array(used))
        return EventPack(rows, np.searchsorted(used, owner).astype(np.int32), self.time_ms[chosen])


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, bytes, bytes]).decode
_decode_readings = msgspec.msgpack.Decoder(list[SourceReading]).decode


def encode_rows(rows: pa.RecordBatch) -> bytes:
    """Encode a batch with its schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_rows(data: bytes) -> pa.RecordBatch:
    """Decode what `encode_rows` returned."""
    return pa.ipc.open_stream(data).read_next_batch()


def encode_pack(pack: EventPack) -> bytes:
    """Encode a pack."""
    return _encode((encode_rows(pack.rows), pack.owner.tobytes(), pack.time_ms.tobytes()))


def decode_pack(data: bytes) -> EventPack:
    """Decode what `encode_pack` returned."""
    rows, index, time_ms = _decode(data)
    return EventPack(decode_rows(rows), np.frombuffer(index, np.int32), np.frombuffer(time_ms, np.int64))


def joined(packs: Sequence[EventPack]) -> EventPack:
    """Join packs to one.

    Args:
        packs: at least one; where types differ, as a session's settings have changed, those of the first count.
    """
    if len(packs) == 1:
        return packs[0]
    schema = packs[0].rows.schema
    rows = [pack.rows if pack.rows.schema.equals(schema) else pack.rows.cast(schema) for pack in packs]
    starts = np.cumsum([0, *(len(each) for each in rows[:-1])])
    index = [pack.owner + np.int32(start) for pack, start in zip(packs, starts, strict=True)]
    return EventPack(pa.concat_batches(rows), np.concatenate(index), np.concatenate([pack.time_ms for pack in packs]))


def decode_readings(data: bytes) -> list[SourceReading]:
    """Decode the readings of a frame."""
    return _decode_readings(data)


def stamps(times_ms: Ints, kinds: Sequence[int] | Ints) -> Ints:
    """Return the column `at`: time and kind of each row.

    Args:
        times_ms: epoch ms; below 0 for a time that cannot be believed.
        kinds: `RowKind` of each.
    """
    return np.maximum(times_ms, -1) << KIND_BITS | np.asarray(kinds, np.int64)


def pack_frame(frame: pa.RecordBatch, shards: int, outage_ms: int | None) -> Iterator[PackedRow]:
    """Pack a frame: the events of each shard, and for every shard what was read.

    Args:
        frame: rows of `plan.prepared`; at least one.
        shards: how many shards there are.
        outage_ms: from what length on a silence of all keys is an outage, ms.
    """
    at: Ints = frame.column("at").to_numpy()
    kinds, times_ms = at & (1 << KIND_BITS) - 1, at >> KIND_BITS
    times_ms = np.where(times_ms < 0, UNTIMED_MS, times_ms)
    parts = frame.column("part").to_numpy() if "part" in frame.schema.names else None
    readings = _encode(_readings(parts, kinds, times_ms, outage_ms))
    yield from ((shard, PayloadKind.READINGS, readings) for shard in range(shards))
    if kinds.any():
        chosen = kinds <= RowKind.UNTIMED
        frame, times_ms = frame.filter(pa.array(chosen)), times_ms[chosen]
    if len(frame):
        for shard, pack in _by_shard(frame, times_ms, shards):
            yield shard, PayloadKind.RECORDS, encode_pack(pack)


def _by_shard(events: pa.RecordBatch, times_ms: Ints, shards: int) -> Iterator[tuple[int, EventPack]]:
    _, codes, first = uniques(row_hashes(events))
    keys = events.column("key").to_numpy()[first]
    # The upper bits: the lower ones of a shard's hashes stay free for whoever hashes again.
    shard_of = ((keys >> 16) % shards).astype(np.int16)
    order = np.argsort(shard_of, kind="stable")
    shard_of = shard_of[order]
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    names = [name for name in events.schema.names if name not in ("at", "part")]
    rows = events.select(names).take(pa.array(first[order]))
    owner = rank[codes]
    ends = np.searchsorted(shard_of, np.arange(shards), side="right")
    by_shard = np.argsort(shard_of[owner], kind="stable")
    owner, time_ms = owner[by_shard], times_ms[by_shard]
    stops = np.searchsorted(owner, ends)
    start = from_row = 0
    for shard, (stop, to_row) in enumerate(zip(stops.tolist(), ends.tolist(), strict=True)):
        if stop > start:
            part = rows.slice(from_row, to_row - from_row)
            yield shard, EventPack(part, owner[start:stop] - np.int32(from_row), time_ms[start:stop])
        start, from_row = stop, to_row


def row_hashes(rows: pa.RecordBatch) -> pa.Array:
    """Return the hash of each row; where all columns are the key's, it is the key's."""
    return rows.column("row" if "row" in rows.schema.names else "key")


def uniques(hashes: pa.Array) -> tuple[Ints, NDArray[np.int32], Ints]:
    """Return the different hashes of a column, which of them each value is, and where each is first.

    Args:
        hashes: int64.
    """
    values: Ints = hashes.to_numpy()
    places = np.arange(len(values), dtype=np.int32)
    # Each value gets a slot by its lower bits. Where that is its own, no dictionary is needed: of a million values, a
    # hundred thousand of them different, one takes 25 ns in place of 46.
    size = 1 << max(8, len(values).bit_length())
    slots, table = values & size - 1, np.empty(size, np.int32)
    table[slots[::-1]] = places[::-1]  # the last write stays, which is the first place
    first_place = table[slots]
    others = np.flatnonzero(values[first_place] != values)
    if len(others):
        found = pa.array(values[others]).dictionary_encode()
        codes = found.indices.to_numpy()
        place_of = np.empty(len(found.dictionary), np.int32)
        place_of[codes[::-1]] = others[::-1]
        first_place[others] = place_of[codes]
    first = np.flatnonzero(first_place == places)
    number = np.empty(len(values), np.int32)
    number[first] = np.arange(len(first), dtype=np.int32)
    return values[first], number[first_place], first


def _readings(parts: Ints | None, kinds: Ints, times_ms: Ints, outage_ms: int | None) -> list[SourceReading]:
    if parts is None:
        return [_reading(0, kinds, times_ms, outage_ms)]
    order = np.argsort(parts, kind="stable")
    ordered = parts[order]
    pieces = np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
    return [_reading(int(parts[here[0]]), kinds[here], times_ms[here], outage_ms) for here in pieces]


def _reading(partition: int, kinds: Ints, times_ms: Ints, outage_ms: int | None) -> SourceReading:
    counts = np.bincount(kinds, minlength=len(RowKind)).tolist()
    is_event, timed = kinds == RowKind.EVENT, times_ms
    if counts[RowKind.EVENT] < len(kinds):
        timed = times_ms[is_event | (kinds == RowKind.TICK)]
    spans = [] if outage_ms is None else spans_of(np.sort(times_ms[is_event]), outage_ms)
    return SourceReading(
        partition,
        int(timed.max(initial=UNTIMED_MS)),
        spans,
        counts[RowKind.EVENT] + counts[RowKind.UNTIMED],
        counts[RowKind.UNTIMED],
        counts[RowKind.UNKEYED],
        counts[RowKind.UNTIMEOUTED],
    )


def spans_of(times_ms: Ints, outage_ms: int) -> list[tuple[int, int]]:
    """Return the stretches between silences of at least `outage_ms`, as (first, last).

    Args:
        times_ms: ascending.
        outage_ms: shortest silence that counts, ms.
    """
    if not len(times_ms):
        return []
    cuts = np.flatnonzero(np.diff(times_ms) >= outage_ms)
    firsts, lasts = times_ms[np.append(0, cuts + 1)], times_ms[np.append(cuts, len(times_ms) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def pack_events(
    batches: Iterable[pa.RecordBatch], slots: tuple[int, ...], outage_ms: int | None
) -> Iterator[pa.RecordBatch]:
    """Pack what `mapInArrow` gives to one task.

    Args:
        batches: rows of `plan.prepared`.
        slots: the grouping key of each shard.
        outage_ms: from what length on a silence of all keys is an outage, ms.
    """
    for frame in frames_of((batch for batch in batches if len(batch)), FRAME_EVENTS_MAX):
        yield packed_batch(pack_frame(frame, len(slots), outage_ms), slots)
