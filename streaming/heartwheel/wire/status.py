"""The status of a shard: one row per trigger on a compacted topic, which dashboards and metrics read."""

from __future__ import annotations

import msgspec


class ListedGroup(msgspec.Struct, kw_only=True):
    """A group of the shard.

    Args:
        group_id: its name.
        kind: its kind.
        state: its state as Kafka names it.
        members: its number of members.
        unknown_sessions: number of members that joined before their source was read, so that their sessions are
            unknown; they are not judged before they join again.
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
        members: its number of members.
        deadline_ms: until when it waits, epoch ms; `null` if unknown.
        awaiting: the first of the members that have not joined, or not synced, yet.
        awaiting_count: the number of these members; `null` if the group is too large to count them.
    """

    group_id: str
    state: str
    members: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int | None


class WheelLevel(msgspec.Struct, kw_only=True):
    """The occupancy of one level of the wheel: `slots` has the number of timers of each slot."""

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
        shard: number of the shard.
        batch_ms: timestamp of the trigger, epoch ms.
        clock_ms: up to when every partition is decided, so that timers have fired, epoch ms; -1 while a partition has
            no time.
        held: whether a backlog is being read: the newest record read is old.
        members: members, pending ones included.
        groups: groups, those without members included.
        groups_by_state: count by Kafka's state name.
        groups_by_kind: count by kind of group.
        wheel: levels, the finest first.
        wheel_moves: timers filed again since the shard was created.
        wheel_fires: timers that fired since the shard was created.
        at_risk: members nearest to expiry, nearest first.
        strays: groups with records in more than one partition, with the number of records.
        counts: the counts of this batch, by name.
        totals: the same since the shard was created.
        state_bytes: size of the encoded state, its block files included.
        newest_ms: time of the newest record read of any partition, epoch ms.
        waiting: records that wait until earlier ones have been read.
        standing: partitions whose time has stopped, and since when, epoch ms; -1 if it was never known.
        feeds: up to when each feed has relayed everything, epoch ms; -1 for a feed without a mark.
        listed: some groups; the next row has the next ones, so that after some rows each group was listed.
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
