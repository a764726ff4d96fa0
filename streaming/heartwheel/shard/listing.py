"""Which groups there are and which of them rebalance, a bounded part of it each time: what a status row says of groups.

A row may not name every group of a shard. So it names one page of them, the next row the next page, and after some rows
each was named. Groups that rebalance are few, and each row names them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.coordinator.consumer_model import EpochGroup, TimerName, member_is_reconciled
from heartwheel.coordinator.manager import AnyGroup
from heartwheel.coordinator.model import NEVER, GroupState
from heartwheel.shard.rules_path import KINDS, STATES, GroupLoader, decode_group
from heartwheel.shard.tables import Table

LOADED_MEMBERS_MAX: Final = 1_000
"""Most members that are looked at to name whom rebalances wait for."""

_REBALANCING: Final = tuple(
    STATES.index(state)
    for state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.RECONCILING)
)

Rows = NDArray[np.intp]


class Listed(NamedTuple):
    """A group: its kind, its state as Kafka names it, its members, and of how many of them the session is unknown."""

    group_id: str
    kind: str
    state: str
    members: int
    unknown_sessions: int


class Rebalancing(NamedTuple):
    """Name a group that rebalances.

    Args:
        group_id: its name.
        state: `PreparingRebalance`, `CompletingRebalance` or, of a group that goes by member epochs, `Reconciling`.
        members: how many it has.
        deadline_ms: until when it waits, epoch ms; `None` if for as long as it takes.
        awaiting: the first of those that have not joined, or not synced; empty if there are too many to look.
        awaiting_count: how many they are; `None` if there were too many to look.
    """

    group_id: str
    state: str
    members: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int | None


def page_of(groups: Table, members: Table, number: int, size: int) -> list[Listed]:
    """List one page of the groups.

    Args:
        groups: the table of groups.
        members: the table of members.
        number: which page; beyond the last it begins again with the first.
        size: most groups of a page.
    """
    used = groups.used()
    if not len(used):
        return []
    pages = -(-len(used) // size)
    rows = used[number % pages * size :][:size]
    sizes = _sizes(groups, members)[rows].tolist()
    unknown = np.bincount(members["group"][members["timeout_ms"] == 0] + 1, minlength=groups.rows + 1)[1:][rows]
    kinds, states = groups["kind"][rows].tolist(), groups["state"][rows].tolist()
    texts = groups.text.read(rows)
    return [
        Listed(group_id, KINDS[kind].value, STATES[state].value, count, 0 if decode_group(detail).unloaded else few)
        if few
        else Listed(group_id, KINDS[kind].value, STATES[state].value, count, 0)
        for (group_id, detail), kind, state, count, few in zip(
            texts, kinds, states, sizes, unknown.tolist(), strict=True
        )
    ]


def rebalancing(groups: Table, members: Table, loader: GroupLoader, most: int, names_max: int) -> list[Rebalancing]:
    """List the groups that rebalance.

    Args:
        groups: the table of groups.
        members: the table of members.
        loader: looks into them.
        most: most groups that are listed.
        names_max: most members of each that are named.
    """
    rows = np.flatnonzero(np.isin(groups["state"], _REBALANCING))[:most]
    if not len(rows):
        return []
    sizes = _sizes(groups, members)[rows]
    is_small = np.cumsum(sizes) <= LOADED_MEMBERS_MAX
    found = {loaded.row: _looked_at(loaded.group, names_max) for loaded in loader.load(rows[is_small])}
    states = groups["state"][rows].tolist()
    return [
        found.get(row) or Rebalancing(group_id, STATES[state].value, size, None, (), None)
        for row, group_id, state, size in zip(rows.tolist(), groups.text.ids(rows), states, sizes.tolist(), strict=True)
    ]


def _looked_at(group: AnyGroup, names_max: int) -> Rebalancing:
    if isinstance(group, EpochGroup):
        return _reconciling(group, names_max)
    is_joining = group.state is GroupState.PREPARING_REBALANCE
    awaited = [
        member.member_id
        for member in group.members.values()
        if (not member.awaiting_join if is_joining else member.pending_sync)
    ]
    deadline_ms = group.join_deadline_ms if is_joining else group.sync_deadline_ms
    return Rebalancing(
        group.group_id,
        group.state.value,
        len(group.all_members()),
        None if deadline_ms == NEVER else deadline_ms,
        tuple(awaited[:names_max]),
        len(awaited),
    )


def _reconciling(group: EpochGroup, names_max: int) -> Rebalancing:
    """List who has not come to the group's epoch; the first that is fenced for it says until when that may take."""
    awaited = [member for member in group.members.values() if not member_is_reconciled(member, group.target_epoch)]
    ends = [
        member.timers[TimerName.REBALANCE].deadline_ms for member in awaited if TimerName.REBALANCE in member.timers
    ]
    return Rebalancing(
        group.group_id,
        group.state().value,
        len(group.members),
        min(ends, default=None),
        tuple(member.member_id for member in awaited[:names_max]),
        len(awaited),
    )


def _sizes(groups: Table, members: Table) -> NDArray[np.intp]:
    """Count the members of each row of the groups; those of free rows fall on a place of their own in front."""
    return np.bincount(members["group"] + 1, minlength=groups.rows + 1)[1:]
