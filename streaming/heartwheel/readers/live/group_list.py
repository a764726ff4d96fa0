"""Pages of groups: which ones, in which order, and how many there are."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping

import msgspec

from heartwheel.base.phrases import count
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.groups import Group, group_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import state_of
from heartwheel.readers.live.storms import StormRule, storm_of
from heartwheel.readers.live.trouble import troubles_of, worst_of


class GroupPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of groups.

    Args:
        rows: those that changed last first.
        next: the value of `before` for the next page; `None` on the last one.
        matched: how many known groups match the filter.
        total: how many groups the engine has.
        known_total: how many of them are known by name.
        note: why the two numbers may differ.
    """

    rows: list[Group]
    next: str | None
    matched: int
    total: int
    known_total: int
    note: str


class GroupOrder(enum.StrEnum):
    """Which groups come first: the worst, those that changed last, with most expirations, most members, or by name."""

    WORST = "worst"
    CHANGED = "changed"
    EXPIRED = "expired"
    MEMBERS = "members"
    NAME = "name"


class GroupFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of groups; empty fields match all.

    Args:
        text: part of the name, upper and lower case alike.
        state: its state.
        storm: only those in a storm.
        trouble: only those in trouble.
        order: the order.
        canary: whether to show the canary's too.
    """

    text: str = ""
    state: str = ""
    storm: bool = False
    trouble: bool = False
    order: GroupOrder = GroupOrder.CHANGED
    canary: bool = False


def list_groups(
    picture: Picture,
    wanted: GroupFilter,
    rule: StormRule,
    *,
    now_ms: int,
    before: int | None = None,
    limit: int = 100,
) -> GroupPage:
    """Return a page of groups.

    Args:
        before: only those whose `version` is below this; in another order than that of changes, how many to skip.
    """
    with picture.lock:
        entries = list(_matching(picture, wanted, rule, now_ms))
        if wanted.order is GroupOrder.CHANGED:
            rest = entries if before is None else [entry for entry in entries if entry.version < before]
        else:
            rest = sorted(entries, key=_key_of(wanted.order, rule, now_ms))[before or 0 :]
        rows = [group_of(entry, rule, now_ms=now_ms) for entry in rest[:limit]]
        following = (
            str(rows[-1].version if wanted.order is GroupOrder.CHANGED else (before or 0) + limit) if rows else ""
        )
        hidden = 0 if wanted.canary else len(picture.canaries())
        known = len(picture.groups.entries) - hidden
        total = max(0, sum(row.groups for row in picture.status.values()) - hidden)
    return GroupPage(
        rows=rows,
        next=following if len(rest) > len(rows) else None,
        matched=len(entries),
        total=max(total, known),
        known_total=known,
        note=_note(known, total),
    )


def _key_of(order: GroupOrder, rule: StormRule, now_ms: int) -> Callable[[GroupEntry], tuple[int, int, str]]:
    """Return the sort key of an order; equally bad groups are sorted by their number of expirations."""

    def worst(entry: GroupEntry) -> tuple[int, int, str]:
        kind, number = worst_of(list(troubles_of(entry, rule, now_ms=now_ms)))
        return kind, number or -len(entry.expirations), entry.group_id

    keys: Mapping[GroupOrder, Callable[[GroupEntry], tuple[int, int, str]]] = {
        GroupOrder.WORST: worst,
        GroupOrder.EXPIRED: lambda entry: (-len(entry.expirations), 0, entry.group_id),
        GroupOrder.MEMBERS: lambda entry: (-(entry.members or 0), 0, entry.group_id),
        GroupOrder.NAME: lambda entry: (0, 0, entry.group_id),
    }
    return keys[order]


def _note(known: int, total: int) -> str:
    if total <= known:
        return ""
    return (
        f"{total - known:,} of {count(total, 'group')} not known by name yet: nothing happened to them, and each batch "
        "names some."
    )


def _matching(picture: Picture, wanted: GroupFilter, rule: StormRule, now_ms: int) -> Iterator[GroupEntry]:
    text = wanted.text.casefold()
    for entry in reversed(picture.groups.entries.values()):
        if (
            (wanted.canary or not picture.is_canary(entry.group_id))
            and text in entry.group_id.casefold()
            and (not wanted.state or state_of(entry) == wanted.state)
            and (not wanted.storm or storm_of(entry.triggers, (), rule, now_ms=now_ms) is not None)
            and (not wanted.trouble or any(troubles_of(entry, rule, now_ms=now_ms)))
        ):
            yield entry
