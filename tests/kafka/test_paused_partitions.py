"""A reader of several partitions that pauses some gets all records of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.structs import TopicPartition

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import reader
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from support.job import wait_for

pytestmark = pytest.mark.kafka

RECORDS = 25_000
"""More than two polls of a reader give."""


def test_what_was_fetched_of_a_paused_partition_is_read_though_nothing_new_comes(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """A partition paused in the middle of an answer is read on, after another one was read to its end."""
    name = topics("paused")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 2, {"message.timestamp.type": "LogAppendTime"})])
    sender = Sender(kafka_broker.bootstrap, name)
    for number in range(RECORDS):
        sender.send(b"%d" % number, b"")
    sender.close()
    parts = [TopicPartition(name, number) for number in (0, 1)]
    with reader(kafka_broker.bootstrap) as consumer:
        consumer.assign(parts)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(parts)
        assert min(ends.values()) > RECORDS // 3
        first = wait_for(lambda: consumer.poll(500), "the first records")
        begun = min(first, key=lambda part: consumer.position(part) / ends[part])
        assert consumer.position(begun) < ends[begun]
        (other,) = set(parts) - {begun}
        consumer.pause(begun)
        wait_for(lambda: not consumer.poll(500) and consumer.position(other) == ends[other], "the other partition")
        consumer.resume(begun)
        wait_for(lambda: not consumer.poll(500) and consumer.position(begun) == ends[begun], "the paused partition")
