"""The groups and rebalances in a status row, a bounded part of them each time.

A row may not list every group of a shard. So it lists one page of them, the next row lists the next page, and after
some rows each group was listed. Groups that rebalance are few, and each row lists them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.epochs.model import EpochGroup, TimerName, member_is_reconciled
from heartwheel.engine.rules.manager import AnyGroup
from heartwheel.engine.rules.model import NEVER, GroupState
from heartwheel.engine.shard.rules_path import KINDS, STATES, GroupLoader, decode_group
from heartwheel.engine.shard.tables import Table

LOADED_MEMBERS_MAX: Final = 1_000
"""The most members that are read to find those that rebalances wait for."""

_REBALANCING: Final = tuple(
    STATES.index(state)
    for state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.RECONCILING)
)


class Listed(NamedTuple):
    """A group: its kind, its state as Kafka names it, its members, and how many have an unknown session timeout."""

    group_id: str
    kind: str
    state: str
    members: int
    unknown_sessions: int


class ListedRebalance(NamedTuple):
    """A group that rebalances.

    Args:
        state: `PreparingRebalance`, `CompletingRebalance` or, for an epoch group, `Reconciling`.
        deadline_ms: until when it waits, epoch ms; `None` if without limit.
        awaiting: the first of the members that have not joined, or not synced; empty if there are too many to read.
        awaiting_count: their number; `None` if there were too many to read.
    """

    group_id: str
    state: str
    members: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int | None


def page_of(groups: Table, members: Table, number: int, size: int) -> list[Listed]:
    """Return one page of the groups.

    Args:
        number: the page; after the last it begins again with the first.
        size: the most groups on a page.
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


def rebalancing(groups: Table, members: Table, loader: GroupLoader, most: int, names_max: int) -> list[ListedRebalance]:
    """Return the groups that rebalance.

    Args:
        most: the most groups to list.
        names_max: the most members of each to list.
    """
    rows = np.flatnonzero(np.isin(groups["state"], _REBALANCING))[:most]
    if not len(rows):
        return []
    sizes = _sizes(groups, members)[rows]
    is_small = np.cumsum(sizes) <= LOADED_MEMBERS_MAX
    found = {loaded.row: _looked_at(loaded.group, names_max) for loaded in loader.load(rows[is_small])}
    states = groups["state"][rows].tolist()
    return [
        found.get(row) or ListedRebalance(group_id, STATES[state].value, size, None, (), None)
        for row, group_id, state, size in zip(rows.tolist(), groups.text.ids(rows), states, sizes.tolist(), strict=True)
    ]


def _looked_at(group: AnyGroup, names_max: int) -> ListedRebalance:
    if isinstance(group, EpochGroup):
        return _reconciling(group, names_max)
    is_joining = group.state is GroupState.PREPARING_REBALANCE
    awaited = [
        member.member_id
        for member in group.members.values()
        if (not member.awaiting_join if is_joining else member.pending_sync)
    ]
    deadline_ms = group.join_deadline_ms if is_joining else group.sync_deadline_ms
    return ListedRebalance(
        group.group_id,
        group.state.value,
        len(group.all_members()),
        None if deadline_ms == NEVER else deadline_ms,
        tuple(awaited[:names_max]),
        len(awaited),
    )


def _reconciling(group: EpochGroup, names_max: int) -> ListedRebalance:
    """Return the members that have not reached the group's epoch; the first deadline to reach it is the group's."""
    awaited = [member for member in group.members.values() if not member_is_reconciled(member, group.target_epoch)]
    ends = [
        member.timers[TimerName.REBALANCE].deadline_ms for member in awaited if TimerName.REBALANCE in member.timers
    ]
    return ListedRebalance(
        group.group_id,
        group.state().value,
        len(group.members),
        min(ends, default=None),
        tuple(member.member_id for member in awaited[:names_max]),
        len(awaited),
    )


def _sizes(groups: Table, members: Table) -> NDArray[np.intp]:
    """Return the number of members of each group row; those of free rows are counted in an extra element in front."""
    return np.bincount(members["group"] + 1, minlength=groups.rows + 1)[1:]
