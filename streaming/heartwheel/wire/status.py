"""The status of a shard: one row a trigger on a compacted topic, from which dashboards and metrics are fed."""

from __future__ import annotations

import msgspec


class ListedGroup(msgspec.Struct, kw_only=True):
    """A group of the shard.

    Args:
        group_id: its name.
        kind: its kind.
        state: its state as Kafka names it.
        members: how many members it has.
        unknown_sessions: how many of them joined before their source was read, so that their sessions are unknown; they
            are not judged before they join again.
    """

    group_id: str
    kind: str
    state: str
    members: int
    unknown_sessions: int = 0


class RebalancingGroup(msgspec.Struct, kw_only=True):
    """A group that rebalances.

    Args:
        group_id: its name.
        state: `PreparingRebalance` while members join, `CompletingRebalance` until the assignment has come.
        members: how many it has.
        deadline_ms: until when it waits, epoch ms; `null` if that is not known.
        awaiting: the first of those that have not joined, or not synced, by now.
        awaiting_count: how many they are; `null` if the group is too large to look.
    """

    group_id: str
    state: str
    members: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int | None


class WheelLevel(msgspec.Struct, kw_only=True):
    """How full one level of the wheel is: `slots` counts the timers of each slot."""

    tick_ms: int
    entries: int
    slots: tuple[int, ...]


class AtRiskMember(msgspec.Struct, kw_only=True):
    """One of the members nearest to expiry; the length of its session is `null` in rows of earlier releases."""

    group_id: str
    member_id: str
    deadline_ms: int
    session_timeout_ms: int | None = None


class StatusRow(msgspec.Struct, kw_only=True):
    """One row of the status topic; `conf/schemas/heartwheel-status.schema.json` describes it.

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
        feeds: up to when each feed has passed on everything, epoch ms; -1 for one that wrote no mark.
        listed: some groups, in the next row the next ones, so that after some rows each was named.
        rebalancing: groups that rebalance; if there are very many, the first of them.
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
    feeds: dict[str, int] = {}
    listed: tuple[ListedGroup, ...] = ()
    rebalancing: tuple[RebalancingGroup, ...] = ()
