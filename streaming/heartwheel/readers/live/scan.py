"""Read a stretch of the heartbeat topic on demand, within limits, and report when a limit has cut it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaError

from heartwheel.base.phrases import count
from heartwheel.kafka.bounded import OversizedBatch
from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaRefusedError, reader
from heartwheel.settings import KafkaSettings
from heartwheel.wire.events import UNCHECKED_GENERATION, Event, EventType, RejectedError
from heartwheel.wire.group_heartbeats import JOIN_EPOCH
from heartwheel.wire.partitioner import partition_of
from heartwheel.wire.requests import Request, decode_request
from kafka import TopicPartition

_ASK_TIMEOUT_MS: Final = 3_000
_POLL_MS: Final = 200


class ScanBounds(NamedTuple):
    """Limits of one read of the topic: records, bytes, and seconds."""

    records_max: int = 200_000
    bytes_max: int = 64 << 20
    seconds_max: float = 5.0


class Beat(NamedTuple):
    """An event of a group, and when it was appended, epoch ms."""

    at_ms: int
    event: Event


class Scan:
    """A read of the events of one group, within limits.

    Args:
        kafka: where Kafka is.
        group_id: the group; its events are in the partition that Java's partitioner chooses for that key.
        bounds: what it may cost.
    """

    def __init__(self, kafka: KafkaSettings, group_id: str, bounds: ScanBounds) -> None:
        self._kafka, self._bounds = kafka, bounds
        self._key = group_id.encode("utf-8", "surrogatepass")
        self.cut = ""
        """Why not everything was read, in words; empty if everything was."""

    def between(self, from_ms: int, to_ms: int) -> Iterator[Beat]:
        """Yield events that were appended in `from_ms <= t < to_ms`, epoch ms.

        Raises:
            KafkaUnreachableError: no broker answers.
            KafkaRefusedError: the topic is missing, or may not be read.
        """
        yield from self._read(from_ms=from_ms, to_ms=to_ms, tail_max=None)

    def tail(self, records: int, from_ms: int) -> Iterator[Beat]:
        """Yield events at the end of the partition, at most so many records, and none from before a moment, epoch ms.

        Raises:
            KafkaUnreachableError: no broker answers.
            KafkaRefusedError: the topic is missing, or may not be read.
        """
        yield from self._read(from_ms=from_ms, to_ms=None, tail_max=records)

    def _read(self, *, from_ms: int, to_ms: int | None, tail_max: int | None) -> Iterator[Beat]:
        topic = self._kafka.topics.heartbeats
        doing = f"read topic {topic}"
        properties = self._kafka.client
        with reader(
            self._kafka.bootstrap_servers,
            properties,
            doing=doing,
            connect_timeout_ms=WATCHED_TIMEOUT_MS,
            on_oversized=self._pass_over,
        ) as consumer:
            numbers = consumer.partitions_for_topic(topic)
            if not numbers:
                raise KafkaRefusedError(f"Kafka at {self._kafka.bootstrap_servers} has no topic {topic}")
            place = TopicPartition(topic, partition_of(self._key, len(numbers)))
            end = consumer.end_offsets([place], timeout_ms=_ASK_TIMEOUT_MS)[place]
            found = consumer.offsets_for_times({place: max(0, from_ms)}, timeout_ms=_ASK_TIMEOUT_MS)[place]
            start = end if found is None else found.offset
            if tail_max is not None and start < end - tail_max:
                start = end - tail_max
                self.cut = f"Only the newest {tail_max:,} records of its partition were read."
            if start < end:
                consumer.assign([place])
                consumer.seek(place, start)
                yield from self._until(consumer, place, end, to_ms)

    def _until(self, consumer: Any, place: Any, end: int, to_ms: int | None) -> Iterator[Beat]:
        began_s, records_read, bytes_read = time.monotonic(), 0, 0
        while consumer.position(place) < end:
            for record in consumer.poll(_POLL_MS).get(place, ()):
                if to_ms is not None and record.timestamp > to_ms:
                    return
                records_read += 1
                bytes_read += len(record.value or b"")
                if record.key == self._key and (beat := _beat(record)) is not None:
                    yield beat
            if stopped := self._exceeded(records_read, bytes_read, time.monotonic() - began_s):
                self.cut = stopped
                return

    def _pass_over(self, batch: OversizedBatch) -> None:
        self.cut = f"Not read: {batch}."

    def _exceeded(self, records_read: int, bytes_read: int, seconds: float) -> str:
        bounds = self._bounds
        if records_read >= bounds.records_max:
            return f"Reading stopped after {count(records_read, 'record')}."
        if bytes_read >= bounds.bytes_max:
            return f"Reading stopped after {bytes_read // 2**20} MiB."
        if seconds >= bounds.seconds_max:
            return f"Reading stopped after {bounds.seconds_max:g} seconds."
        return ""


READ_ERRORS: Final = (KafkaError, KafkaRefusedError, ConnectionError)
"""What a scan raises when Kafka does not answer."""


def _beat(record: Any) -> Beat | None:
    try:
        return Beat(record.timestamp, as_event(decode_request(record.value)))
    except RejectedError:
        return None


def as_event(request: Request) -> Event:
    """Return a heartbeat at a member epoch as its counterpart in the classic protocol: join, leave, or heartbeat."""
    if isinstance(request, Event):
        return request
    kind = EventType.HEARTBEAT if request.member_epoch > JOIN_EPOCH else EventType.JOIN
    return Event(
        type=EventType.LEAVE if request.member_epoch < JOIN_EPOCH else kind,
        group_id=request.group_id,
        member_id=request.sender,
        generation_id=max(request.member_epoch, UNCHECKED_GENERATION),
        group_instance_id=request.group_instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
    )
