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
        clock_ms: up to where timers have fired, epoch ms; -1 before the first live trigger.
        held: whether the clock stands still, as a backlog is being read.
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
