"""What the topics are to be like: names, partitions, settings and the reasons for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

TIMESTAMP_TYPE: Final = "message.timestamp.type"


CLEANUP_POLICY: Final = "cleanup.policy"


COMPRESSION: Final = "compression.type"


UNPACKED: Final = "uncompressed"
"""The `compression.type` of a topic that is read: `max.message.bytes` counts compressed bytes, and 32 KiB can hold a
gigabyte. A broker that has to change the compression of a batch unpacks it, and counts what comes out (Kafka's
`LogValidator`, then `UnifiedLog.append`); one that stores a batch as it came looks at neither."""


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
        partitions: how many it is created with; an existing one may have another number.
        settings: topic settings it is created with; `VERIFIED_SETTINGS` of them must hold for an existing one.
    """

    name: str
    partitions: int
    settings: Mapping[str, str]


def engine_topics(
    names: TopicNames | None = None, *, heartbeat_partitions: int = 4, output_partitions: int = 4
) -> list[TopicSpec]:
    """Describe the six topics of an engine.

    All take the broker's append time: it is the one clock that decides. The retention of heartbeats bounds how long the
    engine may stand still and still catch up with everything that was sent meanwhile.
    """
    names = names or TopicNames()
    # Retention drops whole closed segments, so segments are cut well before a topic is as old as its retention.
    beats = _kept(12 * _HOUR_MS) | {"segment.bytes": str(128 * _MIB), COMPRESSION: UNPACKED}
    outputs = _kept(7 * _DAY_MS)
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
        TopicSpec(name, partitions, {TIMESTAMP_TYPE: "LogAppendTime"} | settings)
        for name, partitions, settings in shapes
    ]


def operations_topics(
    requests: str = "delayed-operations",
    outcomes: str = "operation-outcomes",
    rejects: str = "heartbeat-rejects",
    *,
    partitions: int = 4,
) -> list[TopicSpec]:
    """Describe the topics of the job of delayed operations; the rejects topic is that of the engine.

    Args:
        rejects: what the topic of records that could not be used is called.
        partitions: partitions of requests and outcomes.
    """
    settings = {TIMESTAMP_TYPE: "LogAppendTime"} | _kept(7 * _DAY_MS)
    read = settings | {COMPRESSION: UNPACKED}
    shapes = ((requests, partitions, read), (outcomes, partitions, settings), (rejects, 1, settings))
    return [TopicSpec(name, count, shape) for name, count, shape in shapes]


def _kept(retention_ms: int) -> dict[str, str]:
    segment_ms = max(60_000, retention_ms // 12)
    return {CLEANUP_POLICY: "delete", "retention.ms": str(retention_ms), "segment.ms": str(segment_ms)}
