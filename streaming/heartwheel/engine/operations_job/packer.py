"""The map side of delayed operations: records in, one packet a shard out, undecodable records set aside by cause.

A watch, and a completion by operation id, go to the shard of the id. What is about a key goes to every shard, and so
does the progress of the partition, which tells the shards what has been read (`heartwheel.engine.operations.log`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

import msgspec
import pyarrow as pa

from heartwheel.engine.operations import PackedRecord, Packet, decode_operation
from heartwheel.engine.runtime.map.frames import frames_of
from heartwheel.engine.runtime.map.packed import PackedRow, PayloadKind, by_partition, packed_batch
from heartwheel.wire.events import RejectedError
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.rejects import Reject, make_reject
from heartwheel.wire.tick import read_tick

_encode = msgspec.msgpack.Encoder().encode
decode_packet = msgspec.msgpack.Decoder(Packet).decode


class OperationPacker(NamedTuple):
    """A packer of records of the delayed-operations topic, by shard.

    Args:
        topic: that topic, named in rejects.
        timeout_ms_max: longest timeout that is accepted, ms.
        runs: the known runs of the ticker.
        partitions_max: the most partitions that a tick is believed to speak of.
    """

    topic: str
    shards: int
    value_bytes_max: int
    timeout_ms_max: int
    runs: tuple[str, ...] = ()
    partitions_max: int = 0

    def pack(self, batch: pa.RecordBatch) -> Iterator[PackedRow]:
        """Pack one batch with the columns key, value, partition, offset and append_ms."""
        for partition, part in by_partition(batch):
            yield from self._pack_partition(partition, part)

    def _pack_partition(self, partition: int, batch: pa.RecordBatch) -> Iterator[PackedRow]:
        offsets: list[int] = batch.column("offset").to_pylist()
        append_ms: list[int] = batch.column("append_ms").to_pylist()
        newest_ms = list(accumulate(append_ms, max))
        records: list[list[PackedRecord]] = [[] for _ in range(self.shards)]
        rejects: list[Reject] = []
        partitions = 0
        for row, value in enumerate(batch.column("value").to_pylist()):
            try:
                shards = self._shards_of(value)
            except RejectedError as error:
                tick = read_tick(value)
                if tick is not None:
                    named = min(tick.partitions, self.partitions_max) if tick.run in self.runs else 0
                    partitions = max(partitions, named)
                    continue
                key = batch.column("key")[row].as_py()
                rejects.append(self._reject(partition, offsets[row], append_ms[row], error, key, value))
                continue
            for shard in shards:
                records[shard].append(PackedRecord(newest_ms[row], offsets[row], value))
        for shard, mine in enumerate(records):
            packet = Packet(partition, offsets[0], newest_ms[-1], tuple(mine), partitions)
            yield shard, PayloadKind.RECORDS, _encode(packet)
        if rejects:
            yield partition % self.shards, PayloadKind.REJECTS, msgspec.json.encode(rejects)

    def _shards_of(self, value: bytes | None) -> Iterable[int]:
        event = decode_operation(value, size_max=self.value_bytes_max, timeout_ms_max=self.timeout_ms_max)
        return range(self.shards) if event.key else (shard_of(event.operation_id, self.shards),)

    def _reject(
        self, partition: int, offset: int, append_ms: int, error: RejectedError, key: bytes | None, value: bytes | None
    ) -> Reject:
        return make_reject(
            topic=self.topic,
            partition=partition,
            offset=offset,
            append_ms=append_ms,
            cause=error.cause.value,
            detail=error.detail,
            key=key,
            value=value,
        )


def pack_operations(
    batches: Iterable[pa.RecordBatch], packer: OperationPacker, slots: tuple[int, ...]
) -> Iterator[pa.RecordBatch]:
    """Pack what `mapInArrow` hands to one task.

    Args:
        batches: Arrow batches of Kafka records.
        packer: with as many shards as there are slots.
        slots: the grouping key of each shard.
    """
    for frame in frames_of(batches):
        rows = list(packer.pack(frame))
        if rows:
            yield packed_batch(rows, slots)
