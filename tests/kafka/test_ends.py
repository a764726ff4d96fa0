"""Which records of a real topic carry their producers' times, and the id that tells a topic that was made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from heartwheel.engine.runtime.driver.checkpoint import CheckpointError
from heartwheel.engine.runtime.driver.topic_guard import TopicGuard
from heartwheel.front.cli.app import run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.ends import Untimed, find_untimed
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import describe_topics, ensure_topics
from heartwheel.settings import load_settings
from kafka import KafkaProducer

pytestmark = pytest.mark.kafka


def _write(bootstrap: str, topic: str, *partitions: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for partition in partitions:
        producer.send(topic, b"v", partition=partition, timestamp_ms=1).get(10)
    producer.close()


def _keep(bootstrap: str, topic: str, kind: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"message.timestamp.type": kind})
    with admin_client(bootstrap) as admin:
        admin.alter_configs([resource])


def test_a_topic_that_kept_create_times(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new checkpoint is not begun at its start, one at its end is; `doctor` names the partitions, and so does a look.

    Made again it has another id, which the checkpoint refuses.
    """
    bootstrap = kafka_broker.bootstrap
    names = TopicNames(**{name: topics(name) for name in TopicNames.__struct_fields__})
    topic = names.heartbeats
    specs = engine_topics(names, heartbeat_partitions=4)
    ensure_topics(bootstrap, specs)
    _keep(bootstrap, topic, "CreateTime")
    _write(bootstrap, topic, 0, 1, 1)
    _keep(bootstrap, topic, "LogAppendTime")
    _write(bootstrap, topic, 0, 2)
    assert find_untimed(bootstrap, topic) == Untimed((0, 1), (1,))
    assert sorted(record.append_ms > 1 for record in read_topic(bootstrap, topic)) == [False] * 3 + [True] * 2

    of_us = [f"kafka.bootstrap_servers={bootstrap}", *(f"kafka.topics.{n}={getattr(names, n)}" for n in _LOGICAL)]
    asked = [*of_us, f"checkpoint.location={tmp_path / 'none'}"]
    assert run(["doctor", "--json", *(word for each in asked for word in ("--set", each))]) == 0
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["append times"]["status"] == "warn"
    assert "newest record of partition 1 carries its producer's time" in found["append times"]["detail"]
    assert "replication factor 1" in found["durability"]["detail"]

    def check(offsets: str) -> None:
        words = [*of_us, f"checkpoint.location={tmp_path / offsets}", f"kafka.starting_offsets={offsets}"]
        TopicGuard(load_settings(None, {}, words).settings, topic, on_recreated=lambda _: None).check(None)

    with pytest.raises(CheckpointError, match=r"begins with records that carry .* in partition 0, 1:") as refused:
        check("earliest")
    assert "starting_offsets=latest" in (refused.value.hint or "")
    check("latest")
    before = describe_topics(bootstrap, [topic])[topic].id
    with admin_client(bootstrap) as admin:
        admin.delete_topics([topic])
    ensure_topics(bootstrap, specs)
    assert describe_topics(bootstrap, [topic])[topic].id not in {"", before}
    with pytest.raises(CheckpointError, match="deleted and made again"):
        check("latest")


_LOGICAL = TopicNames.__struct_fields__
