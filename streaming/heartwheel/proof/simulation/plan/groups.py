"""What one group of a history is like: who is in it, and how they behave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GroupPlan:
    """One group of a history.

    Args:
        group_id: its name.
        kind: `presence`, `loaded` or `classic`; `consumer`, `share` or `streams`; `mixed` for a consumer group in which
            every other member speaks the classic protocol.
        members: how many there are at most.
        session_ms: their session timeout.
        beat_ms: how often they beat; some do so only just in time.
        rebalance_ms: their rebalance timeout.
        static: whether they have instance ids.
        stray: whether some of them send to another partition.
        reloads: whether its coordinator goes away and comes back.
        partitioner: how its producers choose a partition: `murmur2` as Kafka's do, or `java`, one of their own.
        metadata_age_ms: how long they take to hear that the topic has grown.
        answers: whether the records of a group that goes by member epochs tell what was answered.
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
