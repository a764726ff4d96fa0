"""The map side: Arrow batches of Kafka records in, one pack a shard out, undecodable records set aside by cause.

Beside its records every shard gets what the task has read of each partition, whomever it was for: one row a task and
shard, by which the shards know how far the time of the partitions has come (`heartwheel.log_time`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heartwheel.coordinator.partition import shard_of
from heartwheel.log_time import ReadingsBuilder, encode_readings
from heartwheel.pack import encode_packs
from heartwheel.wire.events import EventType, RejectedError, TickError, decode_event, fingerprint
from heartwheel.wire.rejects import Reject, make_reject
from heartwheel.wire.tick import ANONYMOUS, TICK_PREFIX, read_tick

REJECTS_BYTES_MAX: Final = 16 << 20
"""How much of the values rejected in one frame of records is kept together; a flood of large garbage must not fill the
memory of the job. Of what comes after, only `REJECT_STUB_BYTES` of each are."""

REJECT_STUB_BYTES: Final = 255
"""How much of a rejected key or value is kept once its frame has kept enough; a multiple of 3, as base64 counts."""

REMEMBERED_BYTES_MAX: Final = 64 << 20
"""How many bytes of distinct values are remembered, at most twice; one value may be a megabyte."""

PACKED_SCHEMA: Final = pa.schema([("slot", pa.int32()), ("kind", pa.int32()), ("payload", pa.binary())])
"""One row a pack: the shard's slot, what the payload is (`PayloadKind`), and the bytes."""

_BAD: Final = (-1, 0)
_TICK: Final = (-2, 0)
"""What stands in the place of a shard's number and a fingerprint for a value that is no event."""


class PayloadKind(enum.IntEnum):
    """What a row on its way to a shard holds."""

    RECORDS = 0
    REJECTS = 1
    READINGS = 2


PackedRow = tuple[int, PayloadKind, bytes]
"""(shard, kind, payload)."""


class _Known:
    """Remember what values decode to, so that a member's heartbeats are decoded once and not once each.

    Two generations of a dictionary bound the memory: when the young one is full, by number or by bytes, the old one is
    dropped. It is a cache of a pure function of the bytes, so it may be lost at any time
    (`test_a_forgotten_value_is_decoded_again`).
    """

    def __init__(self, shards: int, size_max: int, value_bytes_max: int) -> None:
        self.shards = shards
        self.size_max = size_max
        self.value_bytes_max = value_bytes_max
        self.young: dict[bytes, tuple[int, int]] = {}
        self.old: dict[bytes, tuple[int, int]] = {}
        self.young_bytes = 0

    def look_up(self, values: list[bytes]) -> list[tuple[int, int]]:
        found = list(map(self.young.get, values))
        return [hit or self._miss(value) for hit, value in zip(found, values, strict=True)]

    def _miss(self, value: bytes) -> tuple[int, int]:
        if value.startswith(TICK_PREFIX) and len(value) <= self.value_bytes_max and read_tick(value) is not None:
            return _TICK  # no two ticks are alike, so they are not worth remembering
        hit = self.old.get(value)
        if hit is None:
            try:
                hit = self._decode(value)
            except TickError:
                return _TICK
            except RejectedError:
                return _BAD
        if len(self.young) >= self.size_max or self.young_bytes >= REMEMBERED_BYTES_MAX:
            self.old, self.young, self.young_bytes = self.young, {}, 0
        self.young[value] = hit
        self.young_bytes += len(value)
        return hit

    def _decode(self, value: bytes) -> tuple[int, int]:
        event = decode_event(value, size_max=self.value_bytes_max)
        mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
        return shard_of(event.group_id, self.shards), mark


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
        remembered_max: how many distinct values are remembered, at most twice.
    """

    def __init__(
        self, topic: str, shards: int, *, value_bytes_max: int = 1 << 20, remembered_max: int = 500_000
    ) -> None:
        self._topic = topic
        self._known = _Known(shards, remembered_max, value_bytes_max)
        self._shards = shards

    def pack(self, batch: pa.RecordBatch, readings: ReadingsBuilder) -> Iterator[PackedRow]:
        """Pack one batch with the columns key, value, partition, offset and append_ms.

        Args:
            batch: the records.
            readings: gets what was read of each partition.
        """
        for partition, part in by_partition(batch):
            yield from self._pack_partition(partition, part, readings)

    def _pack_partition(self, partition: int, batch: pa.RecordBatch, readings: ReadingsBuilder) -> Iterator[PackedRow]:
        values = batch.column("value").cast(pa.large_binary()).dictionary_encode()
        bodies = values.dictionary
        found = self._known.look_up(bodies.to_pylist())
        shard = np.fromiter((hit[0] for hit in found), np.int64, len(found))
        marks = np.fromiter((hit[1] for hit in found), np.int64, len(found))
        entry = values.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.intp)
        if values.null_count or len(shard) == 0:
            row_shard = np.where(entry >= 0, shard[entry] if len(shard) else -1, -1)
        else:
            row_shard = shard[entry]
        append_ms = batch.column("append_ms").to_numpy(zero_copy_only=False)
        offset = batch.column("offset").to_numpy(zero_copy_only=False)
        tick_rows = np.flatnonzero(row_shard == _TICK[0])
        ticks = [read_tick(value) or ANONYMOUS for value in values.take(pa.array(tick_rows)).to_pylist()]
        effective_ms = readings.add(partition, int(offset[0]), append_ms, tick_rows.tolist(), ticks)
        yield from self._by_shard(partition, bodies, shard, marks, entry, row_shard, effective_ms, offset)
        bad = np.flatnonzero(row_shard == _BAD[0])
        if len(bad):
            yield (
                partition % self._shards,
                PayloadKind.REJECTS,
                msgspec.json.encode(self._rejects(partition, batch, bad.tolist())),
            )

    def _by_shard(
        self,
        partition: int,
        bodies: pa.Array,
        shard: NDArray[np.int64],
        marks: NDArray[np.int64],
        entry: NDArray[np.intp],
        row_shard: NDArray[np.int64],
        append_ms: NDArray[np.int64],
        offset: NDArray[np.int64],
    ) -> Iterator[PackedRow]:
        # Stable sorts keep the log's order inside a shard (`test_packer.py::test_order_is_kept`).
        entry_order = np.argsort(shard, kind="stable")
        row_order = np.argsort(row_shard.astype(np.int16), kind="stable")
        entry_cuts = np.searchsorted(shard[entry_order], np.arange(self._shards + 1))
        row_cuts = np.searchsorted(row_shard[row_order], np.arange(self._shards + 1))
        rank = np.empty(len(shard), np.intp)
        rank[entry_order] = np.arange(len(shard))
        for s in range(self._shards):
            rows = row_order[row_cuts[s] : row_cuts[s + 1]]
            if not len(rows):
                continue
            mine = entry_order[entry_cuts[s] : entry_cuts[s + 1]]
            for payload in encode_packs(
                partition,
                marks[mine],
                bodies.take(pa.array(mine)),
                rank[entry[rows]] - entry_cuts[s],
                append_ms[rows],
                offset[rows],
            ):
                yield s, PayloadKind.RECORDS, payload

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
            decode_event(value, size_max=self._known.value_bytes_max)
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
) -> Iterator[pa.RecordBatch]:
    """Pack what `mapInArrow` hands to one task.

    A worker process is used for many tasks, so its packer, and what it remembers, outlives the task.

    Args:
        batches: Arrow batches of Kafka records.
        topic: the heartbeat topic.
        slots: the grouping key of each shard (`heartwheel.spark.slots`).
        value_bytes_max: longest value that is accepted.
        runs: the known runs of the ticker.
        outage_min_ms: shortest gap that may be an outage, ms.
    """
    key = (topic, len(slots), value_bytes_max)
    packer = _packers.setdefault(key, Packer(topic, len(slots), value_bytes_max=value_bytes_max))
    readings = ReadingsBuilder(runs, outage_min_ms)
    for batch in batches:
        rows = list(packer.pack(batch, readings))
        if rows:
            yield packed_batch(rows, slots)
    yield from last_batch(readings, slots)


def last_batch(readings: ReadingsBuilder, slots: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """Tell every shard what a task has read, if it has read anything."""
    if found := readings.readings():
        payload = encode_readings(found)
        yield packed_batch([(shard, PayloadKind.READINGS, payload) for shard in range(len(slots))], slots)


def packed_batch(rows: Iterable[PackedRow], slots: tuple[int, ...]) -> pa.RecordBatch:
    """Shape rows as an Arrow batch of `PACKED_SCHEMA`."""
    shards, kinds, payloads = zip(*rows, strict=True)
    columns = [
        pa.array([slots[shard] for shard in shards], pa.int32()),
        pa.array(kinds, pa.int32()),
        pa.array(payloads, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED_SCHEMA)
