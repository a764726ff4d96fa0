"""The topics of the engine: what they must be like, how to make them, and what is wrong with existing ones."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import InvalidReplicationFactorError, TopicAlreadyExistsError

from heartwheel.kafka.client import CONNECT_TIMEOUT_MS, admin_client
from heartwheel.kafka.topic_specs import CLEANUP_POLICY, COMPRESSION, TIMESTAMP_TYPE, UNPACKED, TopicSpec

VERIFIED_SETTINGS: Final = (TIMESTAMP_TYPE, CLEANUP_POLICY)
"""Settings that an existing topic must have; all others (retention, segments) are its owner's business."""


BOUNDED_COMPRESSIONS: Final = (UNPACKED, "snappy")
"""The values of `compression.type` that bound what a batch unpacks to: exactly, and to 21 times its size, which is the
most that the format of snappy can hold."""

_NO_ID: Final = str(uuid.UUID(int=0))
"""What the metadata of a broker has that knows no ids of topics."""

_FENCED_MAX_S: Final = 15.0
"""How long a topic is tried to be made while every broker is fenced: longer than a session of a broker, 9 s."""


class TopicState(msgspec.Struct, frozen=True):
    """What a cluster says of one topic.

    Args:
        replication_factor: the least of its partitions.
        id: what tells it from another topic that had the name before; empty from brokers before Kafka 2.8.
    """

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]
    id: str = ""


class Difference(msgspec.Struct, frozen=True):
    """One setting of an existing topic that is not as it must be."""

    topic: str
    setting: str
    wanted: str
    found: str


class TopicsReport(msgspec.Struct, frozen=True):
    """The outcome of `ensure_topics`.

    Args:
        missing: names of those that are not there, and were not to be made.
        differences: what is wrong with those that were there before.
        advice: what would be better about those that were there before; nothing goes wrong by itself without it.
    """

    created: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    advice: tuple[Difference, ...] = ()


def ensure_topics(
    bootstrap: str,
    specs: Sequence[TopicSpec],
    *,
    create: bool = True,
    properties: Mapping[str, str] | None = None,
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
) -> TopicsReport:
    """Make the topics that are missing, and compare those that are there; existing topics are never changed.

    Args:
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to describe or create them.
    """
    doing = "create the topics" if create else "compare the topics"
    with admin_client(bootstrap, properties, doing=doing, connect_timeout_ms=connect_timeout_ms) as admin:
        states = _describe(admin, [spec.name for spec in specs])
        missing = [spec for spec in specs if spec.name not in states]
        if create:
            for spec in missing:
                _create(admin, spec)
    names = tuple(spec.name for spec in missing)
    return TopicsReport(
        created=names if create else (),
        missing=() if create else names,
        differences=tuple(differences(specs, states)),
        advice=tuple(_advice(specs, states)),
    )


def describe_topics(
    bootstrap: str,
    names: Sequence[str],
    *,
    properties: Mapping[str, str] | None = None,
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
) -> dict[str, TopicState]:
    """Ask a cluster about topics.

    Args:
        properties: Kafka client properties in dotted style.

    Returns:
        What it says, by name; topics that do not exist are absent.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to tell.
    """
    doing = "describe the topics"
    with admin_client(bootstrap, properties, doing=doing, connect_timeout_ms=connect_timeout_ms) as admin:
        return _describe(admin, names)


def count_partitions(
    bootstrap: str,
    name: str,
    *,
    properties: Mapping[str, str] | None = None,
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
) -> int:
    """Count the partitions of a topic; 0 if it does not exist.

    Args:
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to tell.
    """
    doing = "count the partitions of a topic"
    with admin_client(bootstrap, properties, doing=doing, connect_timeout_ms=connect_timeout_ms) as admin:
        return sum(len(topic["partitions"]) for topic in admin.describe_topics([name]) if not topic["error_code"])


def differences(specs: Sequence[TopicSpec], states: Mapping[str, TopicState]) -> list[Difference]:
    """List where existing topics are not as they must be.

    Args:
        states: what they are like, by name.
    """
    return [
        Difference(spec.name, setting, spec.settings[setting], states[spec.name].settings.get(setting, ""))
        for spec in specs
        if spec.name in states
        for setting in VERIFIED_SETTINGS
        if spec.settings.get(setting) not in {None, states[spec.name].settings.get(setting)}
    ]


def _advice(specs: Sequence[TopicSpec], states: Mapping[str, TopicState]) -> list[Difference]:
    return [
        Difference(spec.name, COMPRESSION, UNPACKED, states[spec.name].settings.get(COMPRESSION, ""))
        for spec in specs
        if spec.name in states
        and COMPRESSION in spec.settings
        and states[spec.name].settings.get(COMPRESSION) not in BOUNDED_COMPRESSIONS
    ]


def _create(admin: Any, spec: TopicSpec) -> None:
    options = {
        "num_partitions": spec.partitions,
        "replication_factor": -1,  # the cluster's
        "configs": dict(spec.settings),
    }
    give_up_s = time.monotonic() + _FENCED_MAX_S
    while True:
        try:
            # Without waiting, the first records may meet a partition that has no leader yet.
            admin.create_topics({spec.name: options}, wait_for_metadata=True)
        except TopicAlreadyExistsError:
            return  # somebody was quicker, which is what we wanted
        except InvalidReplicationFactorError as error:
            # Brokers that have sent the controller nothing for some seconds are fenced and do not count; after a
            # stall of the machine that is over in a moment.
            if "fenced" not in str(error) or time.monotonic() > give_up_s:
                raise
            time.sleep(0.2)
        else:
            return


def _describe(admin: Any, names: Sequence[str]) -> dict[str, TopicState]:
    found = {topic["name"]: topic for topic in admin.describe_topics(list(names)) if not topic["error_code"]}
    if not found:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in found]
    settings = admin.describe_configs(resources, config_filter="all").get("topic", {})
    return {name: _state(topic, settings.get(name, {})) for name, topic in found.items()}


def _state(topic: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> TopicState:
    partitions = topic["partitions"]
    replicas = min((len(partition["replica_nodes"]) for partition in partitions), default=0)
    values = {name: str(entry["value"]) for name, entry in settings.items()}
    topic_id = str(topic.get("topic_id") or "")
    topic_id = "" if topic_id == _NO_ID else topic_id
    return TopicState(topic["name"], len(partitions), replicas, values, topic_id)
