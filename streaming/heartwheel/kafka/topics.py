"""The topics of the engine: what they must be like, how to make them, and what is wrong with existing ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import InvalidReplicationFactorError, TopicAlreadyExistsError

from heartwheel.kafka.client import CONNECT_TIMEOUT_MS, admin_client

TIMESTAMP_TYPE: Final = "message.timestamp.type"
CLEANUP_POLICY: Final = "cleanup.policy"

VERIFIED_SETTINGS: Final = (TIMESTAMP_TYPE, CLEANUP_POLICY)
"""Settings that an existing topic must have; all others (retention, segments) are its owner's business."""

COMPRESSION: Final = "compression.type"

UNPACKED: Final = "uncompressed"
"""The `compression.type` of a topic that is read: `max.message.bytes` counts compressed bytes, and 32 KiB can hold a
gigabyte. A broker that has to change the compression of a batch unpacks it, and counts what comes out (Kafka's
`LogValidator`, then `UnifiedLog.append`); one that stores a batch as it came looks at neither."""

BOUNDED_COMPRESSIONS: Final = (UNPACKED, "snappy")
"""The values of `compression.type` that bound what a batch unpacks to: exactly, and to 21 times its size, which is the
most that the format of snappy can hold."""

_FENCED_MAX_S: Final = 15.0
"""How long a topic is tried to be made while every broker is fenced: longer than a session of a broker, 9 s."""

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MIB: Final = 1 << 20


class TopicNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of one engine's topics."""

    heartbeats: str = "consumer-heartbeats"
    expirations: str = "member-expirations"
    triggers: str = "rebalance-triggers"
    status: str = "heartwheel-status"
    rejects: str = "heartbeat-rejects"
    job: str = "heartwheel-job"


class TopicSpec(msgspec.Struct, frozen=True):
    """What a topic should be like.

    Args:
        name: its name.
        partitions: how many it is created with; an existing one may have another number.
        settings: topic settings it is created with; `VERIFIED_SETTINGS` of them must hold for an existing one.
        replication_factor: how many replicas it is created with; -1 leaves that to the cluster.
    """

    name: str
    partitions: int
    settings: Mapping[str, str]
    replication_factor: int = -1


class TopicState(msgspec.Struct, frozen=True):
    """What a cluster says of one topic: its partitions, replicas and all its settings."""

    name: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]


class Difference(msgspec.Struct, frozen=True):
    """One setting of an existing topic that is not as it must be."""

    topic: str
    setting: str
    wanted: str
    found: str


class TopicsReport(msgspec.Struct, frozen=True):
    """The outcome of `ensure_topics`.

    Args:
        created: names of the topics that were made now.
        missing: names of those that are not there, and were not to be made.
        differences: what is wrong with those that were there before.
        advice: what would be better about those that were there before; nothing goes wrong by itself without it.
    """

    created: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    advice: tuple[Difference, ...] = ()


def engine_topics(
    names: TopicNames | None = None,
    *,
    heartbeat_partitions: int = 4,
    output_partitions: int = 4,
    heartbeat_retention_ms: int = 12 * _HOUR_MS,
    output_retention_ms: int = 7 * _DAY_MS,
    replication_factor: int = -1,
) -> list[TopicSpec]:
    """Describe the six topics of an engine.

    All take the broker's append time: it is the one clock that decides. The retention of heartbeats bounds how long the
    engine may stand still and still catch up with everything that was sent meanwhile.

    Args:
        names: what they are called.
        heartbeat_partitions: partitions of the heartbeats.
        output_partitions: partitions of expirations and triggers.
        heartbeat_retention_ms: how long heartbeats are kept, ms.
        output_retention_ms: how long expirations, triggers and rejects are kept, ms.
        replication_factor: replicas of each; -1 leaves that to the cluster.
    """
    names = names or TopicNames()
    # Retention drops whole closed segments, so segments are cut well before a topic is as old as its retention.
    beats = _kept(heartbeat_retention_ms) | {"segment.bytes": str(128 * _MIB), COMPRESSION: UNPACKED}
    outputs = _kept(output_retention_ms)
    # One small row a shard a second: without these a log of the last day would be read to learn the latest rows.
    status = {
        CLEANUP_POLICY: "compact",
        "segment.bytes": str(16 * _MIB),
        "segment.ms": str(10 * 60_000),
        "max.compaction.lag.ms": str(_HOUR_MS),
        "delete.retention.ms": str(_HOUR_MS),
    }
    shapes = [
        (names.heartbeats, heartbeat_partitions, beats),
        (names.expirations, output_partitions, outputs),
        (names.triggers, output_partitions, outputs),
        (names.status, 1, status),
        (names.rejects, 1, outputs),
        (names.job, 1, status),
    ]
    return [
        TopicSpec(name, partitions, {TIMESTAMP_TYPE: "LogAppendTime"} | settings, replication_factor)
        for name, partitions, settings in shapes
    ]


def operations_topics(
    requests: str = "delayed-operations",
    outcomes: str = "operation-outcomes",
    rejects: str = "heartbeat-rejects",
    *,
    partitions: int = 4,
    retention_ms: int = 7 * _DAY_MS,
    replication_factor: int = -1,
) -> list[TopicSpec]:
    """Describe the topics of the job of delayed operations; the rejects topic is that of the engine.

    Args:
        requests: what the topic of watches, completions and high watermarks is called.
        outcomes: what the topic of outcomes is called.
        rejects: what the topic of records that could not be used is called.
        partitions: partitions of requests and outcomes.
        retention_ms: how long records are kept, ms.
        replication_factor: replicas of each; -1 leaves that to the cluster.
    """
    settings = {TIMESTAMP_TYPE: "LogAppendTime"} | _kept(retention_ms)
    read = settings | {COMPRESSION: UNPACKED}
    shapes = ((requests, partitions, read), (outcomes, partitions, settings), (rejects, 1, settings))
    return [TopicSpec(name, count, shape, replication_factor) for name, count, shape in shapes]


def _kept(retention_ms: int) -> dict[str, str]:
    segment_ms = max(60_000, retention_ms // 12)
    return {CLEANUP_POLICY: "delete", "retention.ms": str(retention_ms), "segment.ms": str(segment_ms)}


def ensure_topics(
    bootstrap: str,
    specs: Sequence[TopicSpec],
    *,
    create: bool = True,
    properties: Mapping[str, str] | None = None,
) -> TopicsReport:
    """Make the topics that are missing, and compare those that are there; existing topics are never changed.

    Args:
        bootstrap: `host:port[,host:port]`.
        specs: what they should be like.
        create: whether to make missing ones.
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to describe or create them.
    """
    with admin_client(bootstrap, properties, doing="create the topics") as admin:
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
        bootstrap: `host:port[,host:port]`.
        names: the topics.
        properties: Kafka client properties in dotted style.
        connect_timeout_ms: how long to look for a broker, ms.

    Returns:
        What it says, by name; topics that do not exist are absent.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to tell.
    """
    doing = "describe the topics"
    with admin_client(bootstrap, properties, doing=doing, connect_timeout_ms=connect_timeout_ms) as admin:
        return _describe(admin, names)


def count_partitions(bootstrap: str, name: str, *, properties: Mapping[str, str] | None = None) -> int:
    """Count the partitions of a topic; 0 if it does not exist.

    Args:
        bootstrap: `host:port[,host:port]`.
        name: the topic.
        properties: Kafka client properties in dotted style.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if the cluster refuses to tell.
    """
    with admin_client(bootstrap, properties, doing="count the partitions of a topic") as admin:
        return sum(len(topic["partitions"]) for topic in admin.describe_topics([name]) if not topic["error_code"])


def differences(specs: Sequence[TopicSpec], states: Mapping[str, TopicState]) -> list[Difference]:
    """List where existing topics are not as they must be.

    Args:
        specs: what they should be like.
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
        "replication_factor": spec.replication_factor,
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
            # Brokers that the controller has not heard of for some seconds are fenced and count for nothing; after a
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
    return TopicState(topic["name"], len(partitions), replicas, values)
