"""Look for the record batches in a topic that unpack to too much, without unpacking them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from heartwheel.kafka.bounded import OversizedBatch
from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaRefusedError, reader
from kafka import TopicPartition

_POLL_MS: Final = 500
_STALL_S_MAX: Final = 20.0


class Found(NamedTuple):
    """What lies at an offset.

    Args:
        last_offset: the last offset of what can only be read, or passed over, as one: of the record itself, or of the
            record batch that is not unpacked.
        oversized: the record batch, if it is not unpacked.
    """

    last_offset: int
    append_ms: int
    oversized: OversizedBatch | None


def find_oversized(
    bootstrap: str,
    topic: str,
    spans: Mapping[int, tuple[int, int]],
    *,
    properties: Mapping[str, str] | None = None,
) -> list[OversizedBatch]:
    """Find the record batches of a stretch of a topic that unpack to too much.

    Args:
        spans: the first offset and the end, exclusive, of each partition; the end of the log counts where it is lower.
        properties: Kafka client properties in dotted style.

    Returns:
        They, in the order of partitions and offsets.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the topic cannot be read, or nothing comes for 20 s.
    """
    found: list[OversizedBatch] = []
    doing = f"look for what is too large in topic {topic}"
    with reader(bootstrap, properties, doing=doing, on_oversized=found.append) as consumer:
        wanted = {TopicPartition(topic, partition): span for partition, span in spans.items()}
        consumer.assign(list(wanted))
        newest = consumer.end_offsets(list(wanted))
        places = {place: (first, min(end, newest[place])) for place, (first, end) in wanted.items()}
        for place, (first, _) in places.items():
            consumer.seek(place, first)
        moved_s = time.monotonic()
        while unread := [place for place, (_, end) in places.items() if consumer.position(place) < end]:
            consumer.pause(*(place for place in places if place not in unread))
            seen = len(found)
            if consumer.poll(_POLL_MS) or len(found) > seen:
                moved_s = time.monotonic()
            elif time.monotonic() - moved_s > _STALL_S_MAX:
                raise KafkaRefusedError(f"nothing came from topic {topic} for {_STALL_S_MAX:g} s")
    ends = {partition: end for partition, (_, end) in spans.items()}
    return sorted(batch for batch in found if batch.first_offset < ends[batch.partition])


def look_at(
    bootstrap: str, topic: str, partition: int, offset: int, *, properties: Mapping[str, str] | None = None
) -> Found | None:
    """Look what lies at an offset; `None` if there is no record.

    Args:
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: there is no such partition, or nothing comes for 20 s.
    """
    passed: list[OversizedBatch] = []
    with reader(
        bootstrap,
        properties,
        doing=f"read topic {topic}",
        connect_timeout_ms=WATCHED_TIMEOUT_MS,
        on_oversized=passed.append,
    ) as consumer:
        place = TopicPartition(topic, partition)
        if partition not in (consumer.partitions_for_topic(topic) or ()):
            raise KafkaRefusedError(f"Kafka at {bootstrap} has no partition {partition} of topic {topic}")
        first, end = consumer.beginning_offsets([place])[place], consumer.end_offsets([place])[place]
        if not first <= offset < end:
            return None
        consumer.assign([place])
        consumer.seek(place, offset)
        give_up_s = time.monotonic() + _STALL_S_MAX
        while time.monotonic() < give_up_s:
            records = consumer.poll(_POLL_MS, max_records=1).get(place, ())
            for batch in passed:
                if batch.first_offset <= offset <= batch.last_offset:
                    return Found(batch.last_offset, batch.append_ms, batch)
            for record in records:
                return Found(offset, record.timestamp, None) if record.offset == offset else None
            if consumer.position(place) > offset:
                return None
    raise KafkaRefusedError(f"nothing came from topic {topic} for {_STALL_S_MAX:g} s")
