"""The status of a shard: one row a trigger on a compacted topic, from which dashboards and metrics are fed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import msgspec

from heartwheel.shard.listing import Rebalancing
from heartwheel.shard.shard import Outcome, Shard

T = TypeVar("T")

STRAYS_MAX = 10
"""How many groups with records in more than one partition a status row names."""

AT_RISK_BYTES_MAX = 64 * 1024
"""Most UTF-8 bytes of the groups and members near their expiry that a status row names, whatever `at_risk_count` says:
the row must stay below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""


LISTED_MAX = 50
"""How many groups a status row lists, the next row the next ones."""

REBALANCING_MAX = 20
"""How many groups that rebalance a status row names."""

AWAITING_MAX = 10
"""How many of the members that such a group waits for are named."""

AWAITING_BYTES_MAX = 1024
"""Most UTF-8 bytes of those names."""

GROUPS_BYTES_MAX = 16 * 1024
"""Most UTF-8 bytes of the names in the list of groups, and as many in that of groups that rebalance."""


class ListedGroup(msgspec.Struct, kw_only=True):
    """Hold a group of the shard: its kind, its state as Kafka names it, how many members it has."""

    group_id: str
    kind: str
    state: str
    members: int


class RebalancingGroup(msgspec.Struct, kw_only=True):
    """Hold a group that rebalances.

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
    listed: tuple[ListedGroup, ...] = ()
    rebalancing: tuple[RebalancingGroup, ...] = ()


def status_of(
    shard: Shard, outcome: Outcome, *, index: int, batch_ms: int, held: bool, at_risk_count: int, state_bytes: int
) -> StatusRow:
    """Describe a shard after a batch.

    Args:
        shard: after `apply`.
        outcome: what `apply` returned.
        index: the shard's number.
        batch_ms: timestamp of the trigger, epoch ms.
        held: whether its clock stands still.
        at_risk_count: how many members nearest to expiry to name.
        state_bytes: size of the encoded state.
    """
    at_risk = [] if held else shard.at_risk(at_risk_count)
    return StatusRow(
        shard=index,
        batch_ms=batch_ms,
        clock_ms=shard.clock_ms,
        held=held,
        members=shard.member_count,
        groups=shard.group_count,
        groups_by_state=shard.groups_by_state(),
        groups_by_kind=shard.groups_by_kind(),
        wheel=tuple(
            WheelLevel(tick_ms=level.tick_ms, entries=level.entries, slots=level.slot_counts)
            for level in shard.occupancy()
        ),
        wheel_moves=shard.wheel_stats.moves,
        wheel_fires=shard.wheel_stats.fires,
        at_risk=tuple(
            AtRiskMember(**member._asdict())
            for member in _fitting(at_risk, AT_RISK_BYTES_MAX, lambda member: (member.group_id, member.member_id))
        ),
        strays=shard.strays(STRAYS_MAX),
        counts=dict(outcome.counts),
        totals=dict(shard.totals),
        state_bytes=state_bytes,
        listed=tuple(
            ListedGroup(**group._asdict())
            for group in _fitting(shard.listed(LISTED_MAX), GROUPS_BYTES_MAX, lambda group: (group.group_id,))
        ),
        rebalancing=tuple(
            RebalancingGroup(**group._asdict())
            for group in _fitting(
                [_brief(group) for group in shard.rebalancing(REBALANCING_MAX, AWAITING_MAX)],
                GROUPS_BYTES_MAX,
                lambda group: (group.group_id, *group.awaiting),
            )
        ),
    )


def _brief(group: Rebalancing) -> Rebalancing:
    """Name fewer of those that are waited for if their ids are long: one group must not take the room of all others."""
    return group._replace(awaiting=tuple(_fitting(list(group.awaiting), AWAITING_BYTES_MAX, lambda name: (name,))))


def _fitting(rows: list[T], bytes_max: int, names: Callable[[T], tuple[str, ...]]) -> list[T]:
    """Take the first rows, as many as their names fit into so many bytes of UTF-8."""
    ends = itertools.accumulate(sum(len(name.encode()) for name in names(row)) for row in rows)
    return rows[: sum(end <= bytes_max for end in ends)]
