"""What a reader hands on before all else, however much else there is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.structs import TopicPartition

from heartwheel.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import reader
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from support.job import wait_for

pytestmark = pytest.mark.kafka

RECORDS = 12_000
"""More than a poll of a reader gives."""


def test_topics_that_come_first_are_in_the_first_answer_of_a_poll(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """Of two crowded topics that have both come, a poll hands on the one that is named, whichever that is."""
    names = topics("one"), topics("other")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, {}) for name in names])
    for name in names:
        sender = Sender(kafka_broker.bootstrap, name)
        for number in range(RECORDS):
            sender.send(b"k", b"%d" % number)
        sender.close()
    for wanted in names:
        with reader(kafka_broker.bootstrap, first=[wanted]) as consumer:
            consumer.assign([TopicPartition(name, 0) for name in names])
            consumer.seek_to_beginning()
            found = wait_for(lambda: consumer.poll(500), "records")
            assert {place.topic for place in found} == {wanted}
