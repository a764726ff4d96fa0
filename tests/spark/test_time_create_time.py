"""A topic that is altered under the job: their producers' times expire nobody, and stop nothing for good."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.wire.events import Event
from heartwheel.wire.requests import encode_request
from kafka import KafkaProducer
from support.job import Job, Topics, beats_of, ended
from support.living import Living
from support.rawfeed import RawMembers
from support.verdicts import assert_audit_is_clean

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(600)]

SESSION_MS = 8_000
LIVING = 40
AHEAD_MS = 50 * 60_000


def _keep(topics: Topics, kind: str) -> None:
    name = topics.names["heartbeats"]
    with admin_client(topics.bootstrap) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs={"message.timestamp.type": kind})])


def _untimed(topics: Topics) -> int:
    return sum(record.append_ms < 0 for record in topics.read("heartbeats"))


def test_p1_a_topic_that_is_altered_under_the_job(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """P1: create times, one of them 50 minutes ahead, expire nobody who lives; once the topic is right the dead are."""
    made = Topics(kafka_broker.bootstrap, topics)
    job = Job(made, tmp_path / "checkpoint").start()
    dead = beats_of("dead", 5, session_ms=4 * SESSION_MS)
    with ended(job), Living(made, RawMembers(members=LIVING, groups=10, session_timeout_ms=SESSION_MS)):
        job.until_live()
        made.send(dead)
        job.wait_for(lambda: f" {LIVING + 5:,} members" in job.log, "the members to be known")
        _keep(made, "CreateTime")
        producer = KafkaProducer(bootstrap_servers=made.bootstrap)
        ahead = encode_request(Event(group_id="ahead", member_id="a", session_timeout_ms=SESSION_MS))
        for partition in (0, 1):
            at_ms = round(time.time() * 1000) + AHEAD_MS
            producer.send(made.names["heartbeats"], ahead, partition=partition, timestamp_ms=at_ms).get(10)
        producer.close()
        job.wait_for(lambda: _untimed(made) > 10 * LIVING, "create times for longer than a session")
        job.wait_for(lambda: "without append time" in job.log, "the job to have read them")
        assert made.expired() == []
        _keep(made, "LogAppendTime")
        job.wait_for(lambda: set(made.expired()) >= {event.member_id for event in dead}, "the dead to be expired")
    assert set(made.expired()) <= {*(event.member_id for event in dead), "a"}
    assert_audit_is_clean(job)
