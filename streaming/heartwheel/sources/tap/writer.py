"""The tap's writer to the heartbeat topic: acknowledged, in order, and without avoidable duplicates."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafka.errors import (
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from heartwheel.kafka.client import CONNECT_TIMEOUT_MS, KafkaRefusedError, connect, plain_errors, reader
from heartwheel.kafka.security import client_settings
from heartwheel.wire.relayed import FEEDS_PARTITION, may_be_relayed, read_feed_fields
from kafka import KafkaProducer, TopicPartition

_DELIVERY_TIMEOUT_MS: Final = 10_000
_BATCH_BYTES: Final = 128 << 10

_NEVER_ACCEPTED: Final = (MessageSizeTooLargeError, RecordListTooLargeError, InvalidRecordError)
"""Errors of records that Kafka will never accept."""


class _Record(NamedTuple):
    value: bytes
    key: bytes | None = None


class Writer:
    """A writer of the tap's events and marks.

    Args:
        properties: Kafka client properties in dotted style.

    Attributes:
        end: the offset after the last record that was written, as far as Kafka's answers showed.

    Raises:
        KafkaUnreachableError: no broker answers.
        KafkaRefusedError: the cluster refuses the login or has no such topic.
    """

    def __init__(self, bootstrap: str, topic: str, properties: Mapping[str, str]) -> None:
        self._bootstrap, self._topic, self._properties = bootstrap, topic, properties
        self.end = -1
        with plain_errors(bootstrap, f"write to topic {topic}"):
            self._producer: Any = connect(
                KafkaProducer,
                bootstrap,
                timeout_ms=CONNECT_TIMEOUT_MS,
                acks="all",
                linger_ms=5,
                max_block_ms=5_000,
                request_timeout_ms=5_000,
                delivery_timeout_ms=_DELIVERY_TIMEOUT_MS,
                batch_size=_BATCH_BYTES,
                allow_auto_create_topics=False,
                **client_settings(properties),
            )
            exists = bool(self._producer.partitions_for(topic))
        if not exists:
            self.close()
            raise KafkaRefusedError(f"Kafka at {bootstrap} has no topic {topic}", hint="heartwheel topics --create")

    def write(self, records: Iterable[tuple[str, bytes]]) -> int:
        """Write events, and wait until all are acknowledged.

        Args:
            records: the group's id and the value of each, in order.

        Returns:
            How many Kafka refused permanently; it would refuse them again, so they are left out.

        Raises:
            KafkaError: one of them may not have been written.
        """
        return self._write([_Record(value, group.encode()) for group, value in records])

    def write_mark(self, value: bytes) -> int:
        """Write a mark, and wait until it is acknowledged.

        Raises:
            KafkaError: it may not have been written.
        """
        return self._write([_Record(value)])

    def _write(self, records: list[_Record]) -> int:
        sent = [(record, self._send(record)) for record in records]
        give_up = time.monotonic() + _DELIVERY_TIMEOUT_MS / 1000
        refused = [record for record, future in sent if not self._is_taken(future, give_up)]
        # One record may be the reason why others were refused: each is tried once more, alone.
        again = time.monotonic() + _DELIVERY_TIMEOUT_MS / 1000
        return sum(not self._is_taken(self._send(record), again) for record in refused)

    def _send(self, record: _Record) -> Any:
        """Start to write a record; `None` if the client refuses it because of its length."""
        try:
            return self._producer.send(self._topic, value=record.value, key=record.key, partition=FEEDS_PARTITION)
        except _NEVER_ACCEPTED:
            return None

    def _is_taken(self, future: Any, give_up: float) -> bool:
        """Wait for the outcome of a record; return whether Kafka accepted it. A permanent refusal returns `False`."""
        try:
            written = None if future is None else future.get(timeout=max(0.1, give_up - time.monotonic()))
        except _NEVER_ACCEPTED:
            return False
        if written is not None:
            self.end = written.offset + 1
        return written is not None

    def read_back(self, feed: str, end: int) -> set[str]:
        """Return the ids of a feed's events that were written from an offset on."""
        found: set[str] = set()
        place = TopicPartition(self._topic, FEEDS_PARTITION)
        with reader(self._bootstrap, self._properties, doing=f"read topic {self._topic}") as consumer:
            until, first = consumer.end_offsets([place])[place], consumer.beginning_offsets([place])[place]
            consumer.assign([place])
            consumer.seek(place, min(max(end, first), until))
            moved = time.monotonic()
            while consumer.position(place) < until:
                for records in (batches := consumer.poll(500)).values():
                    found.update(_ids_of(records, feed))
                moved = time.monotonic() if batches else moved
                if time.monotonic() - moved > _DELIVERY_TIMEOUT_MS / 1000:
                    raise KafkaTimeoutError(f"nothing comes from topic {self._topic}")
        return found

    def end_offset(self) -> int:
        """Return the current end offset of the partition."""
        place = TopicPartition(self._topic, FEEDS_PARTITION)
        with reader(self._bootstrap, self._properties, doing=f"read topic {self._topic}") as consumer:
            return int(consumer.end_offsets([place])[place])

    def close(self) -> None:
        """Close the producer; records in flight are given up."""
        with contextlib.suppress(KafkaError, OSError):
            try:
                self._producer.close(timeout=1)
            except KafkaError:
                self._producer._sender.force_close()  # noqa: SLF001 - there is no public way to do it


def _ids_of(records: Iterable[Any], feed: str) -> Iterable[str]:
    for record in records:
        if record.value is not None and may_be_relayed(record.value):
            relayed = read_feed_fields(record.value)
            if relayed is not None and relayed.feed == feed:
                yield relayed.id
