"""The map side: Arrow batches of Kafka records in, one pack a shard out, undecodable records set aside by cause.

Beside its records every shard gets what the task has read of each partition, whomever it was for: one row a task and
shard, by which the shards know how far the time of the partitions has come (`heartwheel.engine.time`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.engine.heartbeats.decoder import BAD, REMEMBERED_MAX, TICK, Decoded, Decoder, require_trusted
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.runtime.map.frames import frames_of
from heartwheel.engine.runtime.map.packed import PackedRow, PayloadKind, by_partition, packed_batch
from heartwheel.engine.shard.sent_pack import encode_relayed, encode_sent
from heartwheel.engine.time import ReadingsBuilder, encode_readings
from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.wire.events import RejectedError
from heartwheel.wire.rejects import Reject, make_reject
from heartwheel.wire.relayed import AHEAD_MS_MAX, FEEDS_PARTITION, read_mark
from heartwheel.wire.requests import decode_request
from heartwheel.wire.tick import ANONYMOUS, read_tick

REJECTS_BYTES_MAX: Final = 16 << 20
"""How much of the values rejected in one frame of records is kept together; a flood of large garbage must not fill the
memory of the job. Of what comes after, only `REJECT_STUB_BYTES` of each are."""

REJECT_STUB_BYTES: Final = 255
"""How much of a rejected key or value is kept once its frame has kept enough; a multiple of 3, as base64 counts."""


class Packer:
    """Pack Kafka records by shard.

    Args:
        topic: the heartbeat topic, named in rejects.
        remembered_max: how many distinct values are remembered.
        feeds: the feeds whose times are believed.
    """

    def __init__(
        self,
        topic: str,
        shards: int,
        *,
        value_bytes_max: int = 1 << 20,
        remembered_max: int = REMEMBERED_MAX,
        feeds: Collection[str] = frozenset(),
    ) -> None:
        self._topic = topic
        self._decoder = Decoder(shards, value_bytes_max, remembered_max, feeds)
        self._shards = shards

    def begin(self, batch: BatchOf | None) -> None:
        """Begin with a batch of a query: heartbeats that it has sent lately may go without their bytes.

        Args:
            batch: which one; `None`, as in the beginning, if all are to be sent with their bytes.
        """
        self._decoder.begin(batch)

    def pack(self, batch: pa.RecordBatch, readings: ReadingsBuilder) -> Iterator[PackedRow]:
        """Pack one batch with the columns key, value, partition, offset and append_ms."""
        for partition, part in by_partition(batch):
            yield from self._pack_partition(partition, part, readings)

    def _pack_partition(self, partition: int, batch: pa.RecordBatch, readings: ReadingsBuilder) -> Iterator[PackedRow]:
        values = batch.column("value").cast(pa.large_binary())
        append_ms, offset = batch.column("append_ms").to_numpy(), batch.column("offset").to_numpy()
        decoded, whole = self._decode(values, partition)
        shard = np.full(len(batch), BAD, np.int16)
        shard[whole] = decoded.shard[decoded.entry]
        tick_rows = np.flatnonzero(shard == TICK)
        tick_values = values.take(pa.array(tick_rows)).to_pylist()
        ticks = [read_tick(value) or ANONYMOUS for value in tick_values]
        effective_ms = readings.add(partition, int(offset[0]), append_ms, tick_rows.tolist(), ticks)
        for row, value in zip(tick_rows.tolist(), tick_values, strict=True):
            if partition != FEEDS_PARTITION or append_ms[row] == UNTIMED_MS:
                continue  # how far ahead of its time a mark is goes by that; the next one says the same
            if (mark := read_mark(value)) is not None and mark.feed in self._decoder.feeds:
                readings.mark(partition, mark, int(effective_ms[row]), int(append_ms[row]))
        if decoded.feed_fields:
            yield from self._relayed(partition, decoded, append_ms[whole], offset[whole])
        yield from self._by_shard(partition, decoded, effective_ms[whole], offset[whole])
        bad = np.flatnonzero(shard == BAD)
        if len(bad):
            times = np.where(append_ms == UNTIMED_MS, effective_ms, append_ms)[bad].tolist()
            rejects = self._rejects(partition, batch, dict(zip(bad.tolist(), times, strict=True)))
            yield partition % self._shards, PayloadKind.REJECTS, msgspec.json.encode(rejects)

    def _decode(self, values: pa.LargeBinaryArray, partition: int) -> tuple[Decoded, NDArray[np.intp]]:
        """Decode the values that are there, and return which of the records have one."""
        if not values.null_count:
            return self._decoder.decode(values, partition), np.arange(len(values))
        whole = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        return self._decoder.decode(values.take(pa.array(whole)), partition), whole

    def _by_shard(
        self, partition: int, decoded: Decoded, append_ms: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> Iterator[PackedRow]:
        # Stable sorts keep the log's order inside a shard (`test_nothing_is_lost_and_order_is_kept`); of 16 bits they
        # are radix sorts, which cost a tenth of a comparison sort here.
        shard = decoded.shard
        record_shard = shard[decoded.entry]
        if decoded.feed_fields:
            record_shard[np.isin(decoded.entry, list(decoded.feed_fields))] = TICK
            shard = shard.copy()
            shard[list(decoded.feed_fields)] = TICK
        entry_order = np.argsort(shard, kind="stable")
        record_order = np.argsort(record_shard, kind="stable")
        # Sorted, each shard's entries and records are a slice each; ticks and bad values come before those of shard 0.
        bounds = np.arange(self._shards + 1, dtype=np.int16)
        entry_cuts = np.searchsorted(shard[entry_order], bounds)
        record_cuts = np.searchsorted(record_shard[record_order], bounds)
        # A record's entry, counted among the entries of all shards in their order.
        rank = np.empty(len(shard), np.int32)
        rank[entry_order] = np.arange(len(shard), dtype=np.int32)
        fingerprints = decoded.fingerprints[entry_order]
        # The sort is stable, so that in each shard the entries with their bytes stay before the others.
        with_bytes = entry_order < len(decoded.bodies)
        bodies = decoded.bodies.take(pa.array(entry_order[with_bytes]))
        body_cuts = np.concatenate(([0], np.cumsum(with_bytes)))[entry_cuts]
        entry = rank[decoded.entry[record_order]]
        append_ms, offset = append_ms[record_order], offset[record_order]
        for s in range(self._shards):
            entries, records = slice(*entry_cuts[s : s + 2]), slice(*record_cuts[s : s + 2])
            if records.start == records.stop:
                continue
            payload = encode_sent(
                partition,
                fingerprints[entries],
                bodies[body_cuts[s] : body_cuts[s + 1]],
                entry[records] - np.int32(entries.start),
                append_ms[records],
                offset[records],
            )
            yield s, PayloadKind.RECORDS, payload

    def _relayed(
        self, partition: int, decoded: Decoded, append_ms: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> Iterator[PackedRow]:
        """Pack the records of feeds, with the times that they say, apart by shard and feed.

        How far ahead a time is goes by the record's own append time: the effective one depends on where batches are cut
        (`test_p3_how_far_ahead_a_feed_is_does_not_depend_on_the_cut`).
        """
        parts: dict[tuple[int, str], list[int]] = {}
        for record in np.flatnonzero(np.isin(decoded.entry, list(decoded.feed_fields))).tolist():
            entry = int(decoded.entry[record])
            parts.setdefault((int(decoded.shard[entry]), decoded.feed_fields[entry].feed), []).append(record)
        for (shard, feed), records in parts.items():
            mine, rank = np.unique(decoded.entry[records], return_inverse=True)
            at_ms = np.array([decoded.feed_fields[entry].at_ms for entry in decoded.entry[records].tolist()], np.int64)
            payload = encode_sent(
                partition,
                decoded.fingerprints[mine],
                decoded.bodies.take(pa.array(mine)),
                rank.astype(np.intp),
                _not_ahead(at_ms, append_ms[records]),
                offset[records],
            )
            yield shard, PayloadKind.RELAYED, encode_relayed(feed, payload)

    def _rejects(self, partition: int, batch: pa.RecordBatch, rows: dict[int, int]) -> list[Reject]:
        rejects, room = [], REJECTS_BYTES_MAX
        for row, append_ms in rows.items():
            reject = self._reject(partition, batch, row, append_ms)
            rejects.append(reject if room > 0 else _stub(reject))
            room -= len(reject.value_base64 or "") * 3 // 4
        return rejects

    def _reject(self, partition: int, batch: pa.RecordBatch, row: int, append_ms: int) -> Reject:
        value: bytes | None = batch.column("value")[row].as_py()
        key: bytes | None = batch.column("key")[row].as_py()
        try:
            decode_request(value, size_max=self._decoder.value_bytes_max)
            require_trusted(value or b"", self._decoder.feeds, partition)
        except RejectedError as error:
            cause, detail = error.cause.value, error.detail
        else:
            raise AssertionError("a record was set aside although it decodes")
        return make_reject(
            topic=self._topic,
            partition=partition,
            offset=batch.column("offset")[row].as_py(),
            append_ms=append_ms,
            cause=cause,
            detail=detail,
            key=key,
            value=value,
        )


def _not_ahead(at_ms: NDArray[np.int64], append_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bound the times that a feed says by the records' append times, where they have one."""
    return np.where(append_ms == UNTIMED_MS, at_ms, np.minimum(at_ms, append_ms + AHEAD_MS_MAX))


def _stub(reject: Reject) -> Reject:
    chars = REJECT_STUB_BYTES // 3 * 4
    key, value = reject.key_base64, reject.value_base64
    return msgspec.structs.replace(reject, key_base64=key and key[:chars], value_base64=value and value[:chars])


_packers: dict[tuple[Any, ...], Packer] = {}


def pack_batches(
    batches: Iterable[pa.RecordBatch],
    topic: str,
    slots: tuple[int, ...],
    value_bytes_max: int,
    runs: tuple[str, ...],
    outage_min_ms: int,
    feeds: tuple[str, ...] = (),
    batch_of: BatchOf | None = None,
) -> Iterator[pa.RecordBatch]:
    """Pack what `mapInArrow` hands to one task.

    A worker process is used for many tasks, so its packer, and what it remembers, outlives the task.

    Args:
        batches: Arrow batches of Kafka records.
        slots: the grouping key of each shard (`heartwheel.engine.runtime.map.slots`).
        runs: the known runs of the ticker.
        outage_min_ms: shortest gap that may be an outage, ms.
        feeds: the feeds whose times are believed.
        batch_of: which batch it is; `None` if all values are to be sent with their bytes.
    """
    key = (topic, len(slots), value_bytes_max, feeds)
    packer = _packers.setdefault(key, Packer(topic, len(slots), value_bytes_max=value_bytes_max, feeds=feeds))
    packer.begin(batch_of)
    readings = ReadingsBuilder(runs, outage_min_ms)
    for frame in frames_of(batches):
        rows = list(packer.pack(frame, readings))
        if rows:
            yield packed_batch(rows, slots)
    yield from last_batch(readings, slots)


def last_batch(readings: ReadingsBuilder, slots: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """Yield for every shard what a task has read, if it has read anything."""
    if found := readings.readings():
        payload = encode_readings(found)
        yield packed_batch([(shard, PayloadKind.READINGS, payload) for shard in range(len(slots))], slots)
