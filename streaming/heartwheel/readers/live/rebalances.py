"""The cost of rebalances: for each group how long, why, for which members it waited, and the time lost a day."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterator
from typing import Final

import msgspec

from heartwheel.base.wall_clock import utc_day
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownState
from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import ExpiryReason

LONGEST_MAX: Final = 5
"""How many rebalances of a group are shown one by one: the longest of all that are kept."""

SLOTS: Final = 200
"""The number of slots that the shown time is divided into, so that a picture of all rebalances has a bounded size."""

_ENDS: Final = frozenset({"rebalance_completed", "group_empty"})


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """One rebalance.

    Args:
        started_ms: when it began, epoch ms.
        ended_ms: when it was complete, epoch ms; `None` if it runs.
        duration_ms: how long it took, ms; `None` if that is not known.
        generation_id: the generation that it makes; -1 if the one before is not known.
        cause: why it began, as a code.
        reason: the same in Kafka's own words.
        blocked_by: members that it waited for until they were removed.
        members: members after it; `None` if a broker's log does not show it.
        empty: whether no member was left.
    """

    started_ms: int
    ended_ms: int | None
    duration_ms: int | None
    generation_id: int
    cause: str
    reason: str
    blocked_by: list[str]
    members: int | None
    empty: bool


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a day.

    Args:
        day: in UTC, as `2026-11-22`.
        rebalances: how many began on it.
        lost_ms: how long those of known length took together, ms; `None` if none has a known length.
        unmeasured: how many have no known length.
    """

    day: str
    rebalances: int
    lost_ms: int | None
    unmeasured: int


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one slot of the shown time: its number from 0 to `SLOTS` - 1, and the rebalances in it.

    Args:
        at: which slot.
        rebalances: how many began in it.
        lost_ms: how much of its time the group rebalanced, ms; `None` if that is not known of any that began in it.
        blocked: whether one of them waited for members until they were removed.
    """

    at: int
    rebalances: int
    lost_ms: int | None
    blocked: bool


class GroupRebalances(msgspec.Struct, frozen=True, kw_only=True):
    """The rebalances of a group.

    Args:
        group_id: its name.
        rebalances: how many there are in the window.
        lost_ms: how long those of known length took together, ms; `None` if none has a known length.
        longest_ms: the longest of them, ms; `None` likewise.
        unmeasured: how many have no known length: they run, or began before what was read.
        days: what each day has cost, the newest first.
        longest: the one that is not over, if there is one, and the longest of all others, the longest first; those of
            unknown length come last, the newest first.
        strip: what each slot of the page's time has cost, from all of them; slots without any are left out.
    """

    group_id: str
    rebalances: int
    lost_ms: int | None
    longest_ms: int | None
    unmeasured: int
    days: list[Day]
    longest: list[Rebalance]
    strip: list[Slot]


class RebalancePage(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that rebalanced.

    Args:
        groups: those that lost most time first.
        from_ms: when the first of what is shown began, epoch ms; `None` if there is none.
        to_ms: when the last was complete, epoch ms.
        slot_ms: how long each slot of a strip is, ms.
        matched: how many groups match the filter.
    """

    groups: list[GroupRebalances]
    from_ms: int | None
    to_ms: int | None
    slot_ms: float
    matched: int


def list_rebalances(
    picture: Picture, *, text: str = "", group: str = "", canary: bool = False, limit: int = 50
) -> RebalancePage:
    """Return the cost of rebalances.

    Args:
        text: part of a group's name, upper and lower case alike.
        group: a group's id, exactly.
    """
    with picture.lock:
        entries = [
            entry
            for entry in picture.groups.entries.values()
            if (canary or not picture.is_canary(entry.group_id))
            and (not group or entry.group_id == group)
            and text.casefold() in entry.group_id.casefold()
        ]
        found = [(entry.group_id, rows) for entry in entries if (rows := list(_rebalances(entry)))]
    found.sort(key=lambda each: (-(_sum_known(_lengths(each[1])) or 0), -len(each[1]), each[0]))
    shown = found[:limit]
    from_ms = min((row.started_ms for _, rows in shown for row in rows), default=None)
    to_ms = max((row.ended_ms or row.started_ms for _, rows in shown for row in rows), default=None)
    slot_ms = max(1, (to_ms or 0) - (from_ms or 0)) / SLOTS
    return RebalancePage(
        groups=[_summed(group_id, rows, from_ms or 0, slot_ms) for group_id, rows in shown],
        from_ms=from_ms,
        to_ms=to_ms,
        slot_ms=slot_ms,
        matched=len(found),
    )


def _summed(group_id: str, rows: list[Rebalance], from_ms: int, slot_ms: float) -> GroupRebalances:
    lengths = _lengths(rows)
    known = [ms for ms in lengths if ms is not None]
    days: dict[str, list[int | None]] = {}
    for row in rows:
        day = utc_day(row.started_ms)
        days.setdefault(day, []).append(row.duration_ms)
    return GroupRebalances(
        group_id=group_id,
        rebalances=len(rows),
        lost_ms=_sum_known(lengths),
        longest_ms=max(known, default=None),
        unmeasured=len(rows) - len(known),
        days=[
            Day(day=day, rebalances=len(ms), lost_ms=_sum_known(ms), unmeasured=ms.count(None))
            for day, ms in sorted(days.items(), reverse=True)
        ],
        longest=heapq.nlargest(LONGEST_MAX, rows, key=_rank),
        strip=_strip(rows, from_ms, slot_ms),
    )


def _rank(row: Rebalance) -> tuple[bool, int, int]:
    return row.ended_ms is None, row.duration_ms or -1, row.started_ms


def _strip(rows: list[Rebalance], from_ms: int, slot_ms: float) -> list[Slot]:
    """Divide the time of all rebalances among the slots."""
    began: dict[int, list[Rebalance]] = {}
    lost: dict[int, float] = {}
    blocked: set[int] = set()
    for row in rows:
        start = (row.started_ms - from_ms) / slot_ms
        end = start + (row.duration_ms or 0) / slot_ms
        first = min(int(start), SLOTS - 1)
        began.setdefault(first, []).append(row)
        for at in range(first, min(int(end), SLOTS - 1) + 1):
            if row.duration_ms is not None:
                lost[at] = lost.get(at, 0) + (min(end, at + 1) - max(start, at)) * slot_ms
            if row.blocked_by:
                blocked.add(at)
    return [
        Slot(
            at=at,
            rebalances=len(began.get(at, ())),
            lost_ms=round(lost[at]) if at in lost else None,
            blocked=at in blocked,
        )
        for at in sorted(began.keys() | lost.keys())
    ]


def _lengths(rows: list[Rebalance]) -> list[int | None]:
    return [row.duration_ms for row in rows]


def _sum_known(lengths_ms: list[int | None]) -> int | None:
    known = [ms for ms in lengths_ms if ms is not None]
    return sum(known) if known else None


def _rebalances(entry: GroupEntry) -> Iterator[Rebalance]:
    begun: TriggerRow | None = None
    taken_out = _taken_out(entry)
    for row in entry.triggers:
        if not row.is_rebalance:
            continue  # a worker that comes or goes in a presence group makes no member wait
        if row.type == "rebalance_triggered":
            # A member that joins within the join phase, or a rebalance that is triggered again, makes no second
            # rebalance.
            begun = begun or row
        elif row.type in _ENDS:
            yield _done(begun, row, _waited_for(taken_out, begun, row))
            begun = None
    if begun is not None:
        yield _done(begun, None, [])


def _taken_out(entry: GroupEntry) -> list[tuple[int, str]]:
    """Return the members removed while the group waited for them, and when, epoch ms; the earliest first.

    The row of a rebalance's end names only those that the end of its join phase removed. A silent member is removed
    earlier, by its own session; one that has joined keeps its session meanwhile. A new member is not waited for.
    """
    return sorted(
        (each.out_ms, each.member_id)
        for each in entry.expirations
        if each.group_state == ShownState.PREPARING_REBALANCE and each.reason != ExpiryReason.NEW_MEMBER_TIMEOUT
    )


def _waited_for(taken_out: list[tuple[int, str]], begun: TriggerRow | None, ended: TriggerRow) -> list[str]:
    """Return the members that a rebalance waited for until they were removed, the earliest first."""
    start = bisect.bisect_left(taken_out, (ended.time_ms if begun is None else begun.time_ms,))
    end = bisect.bisect_left(taken_out, (ended.time_ms + 1,))
    return list(dict.fromkeys([*(member_id for _, member_id in taken_out[start:end]), *ended.removed]))


def _done(begun: TriggerRow | None, ended: TriggerRow | None, blocked_by: list[str]) -> Rebalance:
    first = begun or ended
    last = ended or begun
    assert first is not None  # noqa: S101 - one of them is given
    assert last is not None  # noqa: S101 - likewise
    duration_ms = None
    if ended is not None:
        duration_ms = ended.duration_ms
        if duration_ms is None and begun is not None:
            duration_ms = ended.time_ms - begun.time_ms
    return Rebalance(
        started_ms=first.time_ms if begun is not None else last.time_ms - (duration_ms or 0),
        ended_ms=ended.time_ms if ended is not None else None,
        duration_ms=duration_ms,
        # A rebalance that runs has the generation that it ends; its own is the next.
        generation_id=last.generation_id + (ended is None and last.generation_id >= 0),
        cause=first.cause or "unknown",
        reason=first.reason,
        blocked_by=blocked_by,
        members=last.member_count,
        empty=ended is not None and ended.type == "group_empty",
    )
