"""The map side: Arrow batches of Kafka records in, one pack a shard out, undecodable records set aside by cause."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.coordinator.partition import shard_of
from heartwheel.events import EventType, RejectedError, decode_event, fingerprint
from heartwheel.pack import encode_packs
from heartwheel.spark.value_table import UNKNOWN, ValueTable

REJECT_VALUE_BYTES_MAX: Final = 64 * 1024
"""How much of a rejected record's value is kept."""

REJECTS_BYTES_MAX: Final = 16 << 20
"""How much of the values rejected in one frame of records is kept together; a flood of large garbage must not fill the
memory of the job. Of what comes after, only `REJECT_STUB_BYTES` of each are."""

REJECT_STUB_BYTES: Final = 255
"""How much of a rejected key or value is kept once its frame has kept enough; a multiple of 3, as base64 counts."""

REMEMBERED_MAX: Final = 4_000_000
"""How many distinct values a worker remembers; each costs 30 to 60 bytes beside its own."""

REMEMBERED_BYTES_MAX: Final = 512 << 20
"""How many bytes these values may have together; memory is taken as they come (`docs/performance.md`)."""

PACKED_SCHEMA: Final = pa.schema([("slot", pa.int32()), ("rejected", pa.bool_()), ("payload", pa.binary())])
"""One row a pack: the shard's slot, whether it holds rejects instead of records, and the bytes."""


class Reject(msgspec.Struct, kw_only=True):
    """Hold one row of the rejects topic; `conf/schemas/heartbeat-rejects.schema.json` describes it."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    cause: str
    detail: str
    key_base64: str | None
    value_base64: str | None
    value_bytes: int | None


class Decoded(NamedTuple):
    """What the distinct values of a frame of records decode to.

    Args:
        bodies: large binary (entries,), the values.
        shard: int64 (entries,), -1 where the value cannot be decoded.
        marks: int64 (entries,), the fingerprint of a heartbeat, else 0.
        entry: intp (records,), which of them a record has.
    """

    bodies: pa.LargeBinaryArray
    shard: NDArray[np.int64]
    marks: NDArray[np.int64]
    entry: NDArray[np.intp]


class Decoder:
    """Decodes values, each distinct one once for as long as it is remembered.

    Args:
        shards: how many shards there are.
        value_bytes_max: longest value that is accepted.
        remembered_max: how many values are remembered.
    """

    def __init__(self, shards: int, value_bytes_max: int, remembered_max: int) -> None:
        self._shards = shards
        self.value_bytes_max = value_bytes_max
        self._table = ValueTable(entries_max=remembered_max, bytes_max=REMEMBERED_BYTES_MAX)
        self._place = np.empty(0, np.int32)

    def decode(self, values: pa.LargeBinaryArray, hashes: NDArray[np.int64]) -> Decoded:
        """Decode the values of a frame, large binary (records,) without nulls, with their hashes."""
        codes = self._table.find(hashes, values)
        unknown = np.flatnonzero(codes == UNKNOWN)
        if not len(unknown):
            distinct, entry = self._distinct(codes)
            return Decoded(self._bodies(distinct), self._shard(distinct), self._table.marks[distinct], entry)
        missing = values.take(pa.array(unknown)).dictionary_encode()
        which = missing.indices.to_numpy()
        found = [self._decode(value) for value in missing.dictionary.to_pylist()]
        shard = np.array([hit[0] for hit in found], np.int64)
        marks = np.array([hit[1] for hit in found], np.int64)
        held = np.flatnonzero(codes != UNKNOWN)
        distinct, held_entry = self._distinct(codes[held])
        entry = np.empty(len(codes), np.intp)
        entry[held] = held_entry
        entry[unknown] = which + len(distinct)
        decoded = Decoded(
            pa.concat_arrays([self._bodies(distinct), missing.dictionary]),
            np.concatenate((self._shard(distinct), shard)),
            np.concatenate((self._table.marks[distinct], marks)),
            entry,
        )
        hash_of = np.empty(len(found), np.int64)
        hash_of[which] = hashes[unknown]
        good = np.flatnonzero(shard >= 0)
        self._table.add(hash_of[good], missing.dictionary.take(pa.array(good)), shard[good], marks[good])
        return decoded

    def _bodies(self, codes: NDArray[np.int32]) -> pa.LargeBinaryArray:
        return self._table.values().take(pa.array(codes))

    def _shard(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._table.shards[codes].astype(np.int64)

    def _distinct(self, codes: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Return the distinct codes, and for each record which of them it has; without a sort."""
        if len(self._place) < len(self._table):
            self._place = np.empty(2 * len(self._table), np.int32)
        at = np.arange(len(codes), dtype=np.int32)
        self._place[codes] = at
        distinct = codes[self._place[codes] == at]
        self._place[distinct] = np.arange(len(distinct), dtype=np.int32)
        return distinct, self._place[codes].astype(np.intp)

    def _decode(self, value: bytes) -> tuple[int, int]:
        try:
            event = decode_event(value, size_max=self.value_bytes_max)
        except RejectedError:
            return -1, 0
        mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
        return shard_of(event.group_id, self._shards), mark


def by_partition(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Cut a batch at the seams between partitions: a task reads several of them, one after the other."""
    partitions = batch.column("partition").to_numpy(zero_copy_only=False)
    cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(partitions)]
    for start, stop in pairwise(cuts):
        if stop > start:
            yield int(partitions[start]), batch.slice(start, stop - start)


class Packer:
    """Pack Kafka records by shard.

    Args:
        topic: the heartbeat topic, named in rejects.
        shards: how many shards there are.
        value_bytes_max: longest value that is accepted.
        remembered_max: how many distinct values are remembered.
    """

    def __init__(
        self, topic: str, shards: int, *, value_bytes_max: int = 1 << 20, remembered_max: int = REMEMBERED_MAX
    ) -> None:
        self._topic = topic
        self._decoder = Decoder(shards, value_bytes_max, remembered_max)
        self._shards = shards

    def pack(self, batch: pa.RecordBatch) -> Iterator[tuple[int, bool, bytes]]:
        """Pack one batch with the columns key, value, value_hash, partition, offset and append_ms.

        Yields:
            (shard, rejected, payload) rows.
        """
        for partition, part in by_partition(batch):
            yield from self._pack_partition(partition, part)

    def _pack_partition(self, partition: int, batch: pa.RecordBatch) -> Iterator[tuple[int, bool, bytes]]:
        values = batch.column("value").cast(pa.large_binary())
        hashes = batch.column("value_hash").to_numpy()
        append_ms, offset = batch.column("append_ms").to_numpy(), batch.column("offset").to_numpy()
        records = np.arange(len(values))
        if values.null_count:
            records = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            values, hashes = values.take(pa.array(records)), hashes[records]
            append_ms, offset = append_ms[records], offset[records]
        decoded = self._decoder.decode(values, hashes)
        yield from self._by_shard(partition, decoded, append_ms, offset)
        accepted = np.zeros(len(batch), np.bool_)
        accepted[records] = decoded.shard[decoded.entry] >= 0
        bad = np.flatnonzero(~accepted)
        if len(bad):
            yield partition % self._shards, True, msgspec.json.encode(self._rejects(partition, batch, bad.tolist()))

    def _by_shard(
        self, partition: int, decoded: Decoded, append_ms: NDArray[np.int64], offset: NDArray[np.int64]
    ) -> Iterator[tuple[int, bool, bytes]]:
        # Stable sorts keep the log's order inside a shard (`test_packer.py::test_order_is_kept`); of 16 bits they are
        # radix sorts, which cost a tenth of a comparison sort here.
        shard = decoded.shard.astype(np.int16)
        record_shard = shard[decoded.entry]
        entry_order = np.argsort(shard, kind="stable")
        record_order = np.argsort(record_shard, kind="stable")
        bounds = np.arange(self._shards + 1, dtype=np.int16)
        entry_cuts = np.searchsorted(shard[entry_order], bounds)
        record_cuts = np.searchsorted(record_shard[record_order], bounds)
        # A record's entry, counted among the entries of all shards in their order.
        rank = np.empty(len(shard), np.intp)
        rank[entry_order] = np.arange(len(shard))
        for s in range(self._shards):
            records = record_order[record_cuts[s] : record_cuts[s + 1]]
            if not len(records):
                continue
            mine = entry_order[entry_cuts[s] : entry_cuts[s + 1]]
            for payload in encode_packs(
                partition,
                decoded.marks[mine],
                decoded.bodies.take(pa.array(mine)),
                rank[decoded.entry[records]] - entry_cuts[s],
                append_ms[records],
                offset[records],
            ):
                yield s, False, payload

    def _rejects(self, partition: int, batch: pa.RecordBatch, rows: list[int]) -> list[Reject]:
        rejects, room = [], REJECTS_BYTES_MAX
        for row in rows:
            reject = self._reject(partition, batch, row)
            rejects.append(reject if room > 0 else _stub(reject))
            room -= len(reject.value_base64 or "") * 3 // 4
        return rejects

    def _reject(self, partition: int, batch: pa.RecordBatch, row: int) -> Reject:
        value: bytes | None = batch.column("value")[row].as_py()
        key: bytes | None = batch.column("key")[row].as_py()
        try:
            decode_event(value, size_max=self._decoder.value_bytes_max)
        except RejectedError as error:
            cause, detail = error.cause.value, error.detail
        else:
            raise AssertionError("a record was set aside although it decodes")
        return make_reject(
            topic=self._topic,
            partition=partition,
            offset=batch.column("offset")[row].as_py(),
            append_ms=batch.column("append_ms")[row].as_py(),
            cause=cause,
            detail=detail,
            key=key,
            value=value,
        )


def make_reject(
    *,
    topic: str,
    partition: int,
    offset: int,
    append_ms: int,
    cause: str,
    detail: str,
    key: bytes | None,
    value: bytes | None,
) -> Reject:
    """Shape a record that could not be used as the row of the rejects topic.

    Args:
        topic: where it was read.
        partition: in which partition.
        offset: and where there.
        append_ms: its append time, epoch ms.
        cause: the enum that is counted.
        detail: words for people.
        key: its key.
        value: its value.
    """
    return Reject(
        topic=topic,
        partition=partition,
        offset=offset,
        append_ms=append_ms,
        cause=cause,
        detail=detail,
        key_base64=to_base64(key),
        value_base64=to_base64(value),
        value_bytes=None if value is None else len(value),
    )


def to_base64(data: bytes | None) -> str | None:
    """Encode a rejected key or value, cut to what is kept of one; `None` stays `None`."""
    return None if data is None else base64.b64encode(data[:REJECT_VALUE_BYTES_MAX]).decode()


def _stub(reject: Reject) -> Reject:
    chars = REJECT_STUB_BYTES // 3 * 4
    key, value = reject.key_base64, reject.value_base64
    return msgspec.structs.replace(reject, key_base64=key and key[:chars], value_base64=value and value[:chars])


_packers: dict[tuple[Any, ...], Packer] = {}


def pack_batches(
    batches: Iterable[pa.RecordBatch], topic: str, slots: tuple[int, ...], value_bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """Pack what `mapInArrow` hands to one task.

    A worker process is used for many tasks, so its packer, and what it remembers, outlives the task.

    Args:
        batches: Arrow batches of Kafka records.
        topic: the heartbeat topic.
        slots: the grouping key of each shard (`heartwheel.spark.slots`).
        value_bytes_max: longest value that is accepted.
    """
    key = (topic, len(slots), value_bytes_max)
    packer = _packers.setdefault(key, Packer(topic, len(slots), value_bytes_max=value_bytes_max))
    for batch in batches:
        rows = list(packer.pack(batch))
        if rows:
            shards, rejected, payloads = zip(*rows, strict=True)
            columns = [
                pa.array([slots[s] for s in shards], pa.int32()),
                pa.array(rejected, pa.bool_()),
                pa.array(payloads, pa.binary()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=PACKED_SCHEMA)
