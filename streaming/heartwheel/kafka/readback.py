"""Read a topic back from its start to its end of now: the log itself is the one witness."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from heartwheel.kafka.client import KafkaRefusedError, reader
from kafka import TopicPartition

_POLL_MS: Final = 500
_STALL_MS_MAX: Final = 20_000


class LogRecord(NamedTuple):
    """One record of a topic.

    Args:
        append_ms: the broker's append time, epoch ms; -1 if the record carries its producer's time.
        value: its value; `None` is a tombstone.
    """

    partition: int
    offset: int
    append_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def read_topic(bootstrap: str, topic: str, *, properties: Mapping[str, str] | None = None) -> Iterator[LogRecord]:
    """Read all committed records that a topic has by now, each partition in its order.

    Args:
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if there is no such topic, or nothing comes for 20 s.
    """
    with reader(bootstrap, properties, doing=f"read topic {topic}", headers=True) as consumer:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise KafkaRefusedError(f"Kafka at {bootstrap} has no topic {topic}")
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        yield from _until(consumer, consumer.end_offsets(partitions), topic)


def _until(consumer: Any, ends: Mapping[Any, int], topic: str) -> Iterator[LogRecord]:
    moved = time.monotonic()
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        batches = consumer.poll(_POLL_MS)
        if batches:
            moved = time.monotonic()
        elif (time.monotonic() - moved) * 1000 > _STALL_MS_MAX:
            raise KafkaRefusedError(
                f"nothing came from topic {topic} for {_STALL_MS_MAX} ms, and its end is not reached"
            )
        for partition, records in batches.items():
            yield from (
                LogRecord(
                    r.partition, r.offset, r.timestamp if r.timestamp_type == 1 else -1, r.key, r.value, r.headers
                )
                for r in records
                if r.offset < ends[partition]
            )
