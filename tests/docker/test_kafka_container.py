"""The container is a real broker: it keeps its data through a crash and takes every codec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.members.feeder import Feeder
from heartwheel.proof.members.schedule import FeedPlan
from kafka import KafkaProducer
from support.silences import SentHeartbeats

if TYPE_CHECKING:
    from support.kafka_container import KafkaContainer

pytestmark = pytest.mark.docker


@pytest.fixture
def names(kafka_container: KafkaContainer, topics: Callable[[str], str]) -> TopicNames:
    """Make the topics for one test."""
    kinds = TopicNames.__struct_fields__
    names = TopicNames(**{kind: topics(kind) for kind in kinds})
    assert len(ensure_topics(kafka_container.bootstrap, engine_topics(names)).created) == len(kinds)
    return names


def test_heartbeats_are_fed_and_stamped(kafka_container: KafkaContainer, names: TopicNames, tmp_path: Path) -> None:
    """A feed to the container is in its log, stamped on arrival, with every acknowledged record."""
    plan = FeedPlan(groups=2, members_per_group=5, heartbeat_interval_ms=200, session_timeout_ms=1000, duration_ms=1000)
    summary = Feeder(plan, kafka_container.bootstrap, names.heartbeats, tmp_path / "truth.jsonl").run()
    beats = SentHeartbeats()
    for record in read_topic(kafka_container.bootstrap, names.heartbeats):
        assert summary.started_ms <= record.append_ms <= summary.ended_ms
        beats.add(record)
    assert beats.fed == summary.acknowledged == summary.sent > 0
    assert beats.members == plan.members


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "zstd", "snappy"])
def test_every_codec_is_taken(kafka_container: KafkaContainer, names: TopicNames, codec: str | None) -> None:
    """The image has the native libraries of all codecs; without them only compressed batches would fail."""
    producer = KafkaProducer(bootstrap_servers=kafka_container.bootstrap, compression_type=codec)
    try:
        futures = [producer.send(names.rejects, b"x" * 1000) for _ in range(10)]
        assert [future.get(10).offset for future in futures] == list(range(10))
    finally:
        producer.close()
    assert [record.value for record in read_topic(kafka_container.bootstrap, names.rejects)] == [b"x" * 1000] * 10


def test_data_survives_kill_and_restart(kafka_container: KafkaContainer, names: TopicNames, tmp_path: Path) -> None:
    """A killed container that is started again has all acknowledged records, at the same address."""
    plan = FeedPlan(groups=1, members_per_group=5, heartbeat_interval_ms=100, session_timeout_ms=1000, duration_ms=300)
    summary = Feeder(plan, kafka_container.bootstrap, names.heartbeats, tmp_path / "truth.jsonl").run()
    kafka_container.kill()
    kafka_container.restart()
    assert sum(1 for _ in read_topic(kafka_container.bootstrap, names.heartbeats)) == summary.acknowledged
