"""Follow topics as they grow."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from heartwheel.kafka.client import KafkaRefusedError, reader
from heartwheel.kafka.readback import LogRecord
from kafka import TopicPartition

_POLL_MS: Final = 200

OnPoll = Callable[[Mapping[str, list[LogRecord]]], None]
"""Called after every poll, with the new records by topic; without any if there are none."""


def follow(bootstrap: str, topics: tuple[str, ...], on_poll: OnPoll, stop: threading.Event) -> None:
    """Read topics from their start and go on reading, until somebody says stop; then read what is there by then.

    Args:
        bootstrap: `host:port[,host:port]`.
        topics: which.
        on_poll: takes what came, several times a second.
        stop: ends it.

    Raises:
        KafkaUnreachableError: if nobody answers at the start.
        KafkaRefusedError: if a topic is missing.
    """
    with reader(bootstrap, doing="follow the topics") as consumer:
        partitions = [partition for topic in topics for partition in _partitions(consumer, bootstrap, topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while not stop.is_set():
            on_poll(_poll(consumer))
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            on_poll(_poll(consumer))


def _partitions(consumer: Any, bootstrap: str, topic: str) -> list[Any]:
    numbers = consumer.partitions_for_topic(topic)
    if not numbers:
        raise KafkaRefusedError(f"Kafka at {bootstrap} has no topic {topic}")
    return [TopicPartition(topic, number) for number in sorted(numbers)]


def _poll(consumer: Any) -> dict[str, list[LogRecord]]:
    found: dict[str, list[LogRecord]] = defaultdict(list)
    for partition, records in consumer.poll(_POLL_MS).items():
        found[partition.topic] += (
            LogRecord(r.partition, r.offset, r.timestamp, r.key, r.value, r.headers) for r in records
        )
    return found
