"""The status of a shard: one row a trigger on a compacted topic, from which dashboards and metrics are fed."""

from __future__ import annotations

import msgspec


class WheelLevel(msgspec.Struct, kw_only=True):
    """Hold how full one level of the wheel is: `slots` counts the timers of each slot."""

    tick_ms: int
    entries: int
    slots: tuple[int, ...]


class AtRiskMember(msgspec.Struct, kw_only=True):
    """Hold one of the members nearest to expiry."""

    group_id: str
    member_id: str
    deadline_ms: int


class StatusRow(msgspec.Struct, kw_only=True):
    """Hold one row of the status topic; `conf/schemas/heartwheel-status.schema.json` describes it.

    Args:
        shard: which shard.
        batch_ms: timestamp of the trigger, epoch ms.
        clock_ms: up to when every partition is decided, so that timers have fired, epoch ms; -1 while a partition gave
            no time.
        held: whether a backlog is being read: the newest record read is old.
        members: members, pending ones included.
        groups: groups, those without members included.
        groups_by_state: count by Kafka's state name.
        groups_by_kind: count by kind of group.
        wheel: levels, the finest first.
        wheel_moves: timers filed again since the shard was made.
        wheel_fires: timers that came out since the shard was made.
        at_risk: members nearest to expiry, nearest first.
        strays: groups with records in more than one partition, and how many.
        counts: what happened in this batch, by name.
        totals: the same since the shard was made.
        state_bytes: size of the encoded state.
        newest_ms: time of the newest record read of any partition, epoch ms.
        waiting: records that wait until what comes before them has been read.
        standing: partitions whose time stands still, and since when, epoch ms; -1 if it was never known.
    """

    shard: int
    batch_ms: int
    clock_ms: int
    held: bool
    members: int
    groups: int
    groups_by_state: dict[str, int]
    groups_by_kind: dict[str, int]
    wheel: tuple[WheelLevel, ...]
    wheel_moves: int
    wheel_fires: int
    at_risk: tuple[AtRiskMember, ...]
    strays: dict[str, int]
    counts: dict[str, int]
    totals: dict[str, int]
    state_bytes: int
    newest_ms: int = -1
    waiting: int = 0
    standing: dict[str, int] = {}
