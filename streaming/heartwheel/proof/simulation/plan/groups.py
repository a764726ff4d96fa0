"""The parameters of one group of a history: its members, and how they behave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """One group of a history.

    Args:
        kind: `presence`, `loaded` or `classic`; `consumer`, `share` or `streams`; `mixed` for a consumer group in which
            every other member speaks the classic protocol.
        beat_ms: the time between two heartbeats; for some groups it is close to the session timeout.
        static: whether they have instance ids.
        stray: whether some of them send to another partition.
        reloads: whether its coordinator unloads and loads it.
        partitioner: how its producers choose a partition: `murmur2` as Kafka's do, or `java`, one of their own.
        metadata_age_ms: how long its producers take to learn that the topic has grown.
        answers: whether the records of an epoch group contain the answers.
        numbered: whether workers of a presence group name their incarnations; their records may arrive late, or twice.
    """

    group_id: str
    kind: str
    members: int
    session_ms: int
    beat_ms: int
    rebalance_ms: int
    static: bool
    stray: bool = False
    reloads: bool
    partitioner: str = "murmur2"
    metadata_age_ms: int = 0
    answers: bool = False
    numbered: bool = False
