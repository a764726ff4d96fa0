"""The tap's writer on a real broker: what was acknowledged is found again, and is in the partition of the feeds."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.settings.models import CoordinatorSettings
from heartwheel.sources.tap.broker_rules import broker_rules, differences
from heartwheel.sources.tap.echo import logger_level
from heartwheel.sources.tap.writer import Writer
from heartwheel.wire.relayed import FEEDS_PARTITION, FeedWatermark, encode_mark, read_mark

pytestmark = pytest.mark.kafka


def _event(group: str, event_id: str, feed: str = "tap") -> tuple[str, bytes]:
    return group, msgspec.json.encode({"group_id": group, "member_id": "m", "feed": feed, "at_ms": 1, "id": event_id})


def test_what_was_written_is_found_again(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """The ids of a feed's events behind the last known offsets are read back, those of no other feed, and no others."""
    topic = topics("passed-on")
    with admin_client(kafka_broker.bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": 3, "replication_factor": 1}})
    writer = Writer(kafka_broker.bootstrap, topic, {})
    try:
        writer.end = writer.end_offset()
        writer.write([_event("g", "1"), _event("h", "2")])
        known = writer.end
        writer.write([_event("g", "3"), _event("h", "4", feed="another"), _event("h", "5")])
        writer.write_mark(encode_mark(FeedWatermark("tap", 7, 1)))
        assert writer.read_back("tap", known) == {"3", "5"}
        assert writer.end_offset() == writer.end
    finally:
        writer.close()
    records = list(read_topic(kafka_broker.bootstrap, topic))
    assert [(record.key, record.partition) for record in records] == [
        *((group, FEEDS_PARTITION) for group in (b"g", b"h", b"g", b"h", b"h")),
        (None, FEEDS_PARTITION),
    ]
    assert read_mark(records[-1].value) == FeedWatermark("tap", 7, 1)


def test_topic_that_is_missing_is_named(kafka_broker: EmbeddedKafka) -> None:
    """Without its topic a tap writes nothing, and names it."""
    with pytest.raises((KafkaRefusedError, KafkaUnreachableError), match="no-such-topic"):
        Writer(kafka_broker.bootstrap, "no-such-topic", {})


def test_level_of_the_request_logger(kafka_broker: EmbeddedKafka) -> None:
    """A broker says at which level its request logger is: here at none that a tap can use."""
    with admin_client(kafka_broker.bootstrap) as admin:
        assert logger_level(admin, 1, "a word that is no logger") not in {"DEBUG", "TRACE"}


def test_rules_of_a_real_broker_are_asked_for(kafka_broker: EmbeddedKafka) -> None:
    """Each rule of `[coordinator]` that Kafka knows by the same name is in its answer, so that it can be compared."""
    with admin_client(kafka_broker.bootstrap) as admin:
        rules = broker_rules(admin, 1)
    assert {"group.initial.rebalance.delay.ms", "group.consumer.session.timeout.ms", "group.max.size"} <= set(rules)
    same = {
        name: rules.get(name.replace("_", "."), value) for name, value in CoordinatorSettings().model_dump().items()
    }
    assert differences(same, rules) == []
    assert len(differences({**same, "group_max_size": 3}, rules)) == 1
