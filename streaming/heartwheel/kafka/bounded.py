"""A consumer whose memory is bounded, whatever was packed into the record batches that it reads.

kafka-python unpacks a compressed batch whole, however large that is, and has no setting against it. So the parts that
do it are replaced here by subclasses, in the consumers that this module makes and in no others: nothing of the library
is patched. They lean on internals of its fetcher, which is why pyproject.toml pins its major version,
tests/project/test_private_parts.py names each of them, and tests/kafka/test_bounded.py reads real bombs of all codecs
from a real broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError, LeaderNotAvailableError
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch

from heartwheel.kafka.records import BatchStamp, read_records
from heartwheel.kafka.unpack import UnpackedTooLargeError, unpack
from kafka import KafkaConsumer

UNPACKED_BYTES_MAX: Final = 64 << 20
"""Most bytes that a record batch may unpack to. Java's producer packs no more than `max.request.size` into one, a
megabyte by default, and other clients do likewise."""

POLL_BYTES_MAX: Final = 64 << 20
"""Bytes of records after which a poll returns; the record that exceeds it is still in it."""

_log = logging.getLogger(__name__)


class OversizedBatch(NamedTuple):
    """Where a record batch is that was not read, as it unpacks to more than `UNPACKED_BYTES_MAX`.

    Args:
        append_ms: the append time of all of them, epoch ms, on a topic that keeps the broker's.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    append_ms: int
    packed_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.topic} partition {self.partition} offsets {self.first_offset} to {self.last_offset}: "
            f"a record batch of {self.packed_bytes:,} bytes that unpacks to more than {UNPACKED_BYTES_MAX >> 20} MiB"
        )


OnOversized = Callable[[OversizedBatch], None]


def warn_of_oversized(batch: OversizedBatch) -> None:
    """Log a batch that was not read."""
    _log.warning("not read: %s", batch)


class BoundedConsumer(KafkaConsumer):  # type: ignore[misc]  # the library has no types
    """A `KafkaConsumer` that passes over record batches that unpack to more than `UNPACKED_BYTES_MAX`.

    Args:
        on_oversized: called with each batch that is passed over, from within `poll`.
        headers: whether to read the headers of records, which without are `None`.
        configs: as `KafkaConsumer` takes them.
    """

    def __init__(
        self,
        *,
        on_oversized: OnOversized = warn_of_oversized,
        headers: bool = False,
        **configs: Any,
    ) -> None:
        super().__init__(**configs)
        # Without metrics: the fetcher that this one replaces has registered them already.
        self._fetcher = _Fetcher(
            self._client, self._subscription, on_oversized=on_oversized, headers=headers, **self.config
        )


class _Fetcher(Fetcher):  # type: ignore[misc]  # the library has no types
    _next_partition_records: Any

    def __init__(
        self,
        client: Any,
        subscriptions: Any,
        *,
        on_oversized: OnOversized,
        headers: bool,
        **configs: Any,
    ) -> None:
        super().__init__(client, subscriptions, **configs)
        self.PartitionRecords = partial(_PartitionRecords, on_oversized=on_oversized, headers=headers)
        self._room = 0

    def fetched_records(self, *arguments: Any, **named: Any) -> Any:
        self._room = POLL_BYTES_MAX
        # The library looks for records of partitions that were paused meanwhile only if this is None, and leaves what
        # has been read to its end here until another answer comes, which may be never.
        if not self._next_partition_records:
            self._next_partition_records = None
        return super().fetched_records(*arguments, **named)

    def beginning_or_end_offset(self, partitions: Any, timestamp: Any, timeout_ms: Any) -> Any:
        """Return the offsets; the library raises a `KeyError` for a partition that has no leader at the moment."""
        try:
            return super().beginning_or_end_offset(partitions, timestamp, timeout_ms)
        except KeyError as error:
            place = error.args[0]
            raise LeaderNotAvailableError(f"partition {place.partition} of {place.topic} has no leader") from error

    def _append(self, drained: Any, part: Any, max_records: int, update_offsets: Any) -> int:
        if self._room <= 0:
            return max_records  # as if there were as many as wanted, which ends the poll
        before = part.bytes_read
        part.bytes_max = self._room
        count: int = super()._append(drained, part, max_records, update_offsets)
        self._room -= part.bytes_read - before
        return count


class _PartitionRecords(Fetcher.PartitionRecords):  # type: ignore[misc]  # the library has no types
    record_iterator: Iterator[Any] | None

    def __init__(self, *arguments: Any, on_oversized: OnOversized, headers: bool, **named: Any) -> None:
        self.bytes_max = POLL_BYTES_MAX
        self._on_oversized, self._headers = on_oversized, headers
        super().__init__(*arguments, **named)

    def take(self, n: int | None = None) -> Any:
        records, end = self.record_iterator, self.bytes_read + self.bytes_max
        self.record_iterator = _until(records or (), lambda: self.bytes_read >= end)
        try:
            return super().take(n)
        finally:
            if self.record_iterator is not None:  # else all was read
                self.record_iterator = records

    def _unpack_records(self, tp: Any, records: Any, key_deserializer: Any, value_deserializer: Any) -> Any:
        guarded = _Records(records, partial(self._pass_over, tp), self._headers)
        return super()._unpack_records(tp, guarded, key_deserializer, value_deserializer)

    def _pass_over(self, tp: Any, batch: DefaultRecordBatch) -> None:
        self._on_oversized(
            OversizedBatch(
                tp.topic,
                tp.partition,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                batch.size_in_bytes,
            )
        )


def _until(records: Iterable[Any], is_enough: Callable[[], bool]) -> Iterator[Any]:
    for record in records:
        yield record
        if is_enough():
            return


class _Records:
    """The batches of a partition in an answer, with guarded ones in their place."""

    def __init__(self, records: Any, pass_over: Callable[[DefaultRecordBatch], None], headers: bool) -> None:  # noqa: FBT001 - of this module alone
        self._records = records
        self._pass_over, self._headers = pass_over, headers

    def next_batch(self) -> Any:
        batch = self._records.next_batch()
        if batch is None:
            return batch
        if batch.magic < 2:
            return _OldBatch(batch._buffer, batch.magic)  # noqa: SLF001 - see the module's docstring
        return _Batch(batch._buffer, self._pass_over, self._headers)  # noqa: SLF001 - likewise


class _Batch(DefaultRecordBatch):  # type: ignore[misc]  # the library has no types
    _buffer: bytearray
    _pos: int

    def __init__(
        self,
        buffer: bytearray,
        pass_over: Callable[[DefaultRecordBatch], None],
        headers: bool,  # noqa: FBT001 - of this module alone
    ) -> None:
        super().__init__(buffer)
        self._pass_over, self._headers = pass_over, headers

    def __iter__(self) -> Any:
        data = bytes(memoryview(self._buffer)[self._pos :])
        if self.compression_type:
            try:
                data = bytes(unpack(self.compression_type, data, UNPACKED_BYTES_MAX))
            except UnpackedTooLargeError:
                self._pass_over(self)
                return iter(())
        append_ms = self.max_timestamp if self.timestamp_type == self.LOG_APPEND_TIME else None
        stamp = BatchStamp(self.base_offset, self.first_timestamp, append_ms)
        return read_records(data, self.records_count, stamp, headers=self._headers)


class _OldBatch(LegacyRecordBatch):  # type: ignore[misc]  # the library has no types
    """A batch of a format before Kafka 0.11, which no broker since 3.0 writes.

    Their header does not tell the offset of the first record, so one that is too large ends the reading: memory stays
    bounded.
    """

    __slots__ = ()

    def _decompress(self, key_offset: int) -> bytearray:
        _, value = self._read_key_value(key_offset)
        try:
            return unpack(self.compression_type, value or b"", UNPACKED_BYTES_MAX)
        except UnpackedTooLargeError:
            raise CorruptRecordError(
                f"the record batch that ends at offset {self.base_offset} unpacks to too much"
            ) from None
