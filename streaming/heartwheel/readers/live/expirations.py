"""The expirations as a table (filtered, newest first, in pages), and one expiration in detail."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Reversible
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.readers.live.expiration import Expiration, is_same_member, logged_ms
from heartwheel.readers.live.older import older_picture, older_until_ms
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.why import why
from heartwheel.wire.verdict_rows import TriggerRow


class ExpirationOrder(enum.StrEnum):
    """Which expirations come first: the newest, the oldest, those silent for longest, known latest, or by group."""

    NEWEST = "newest"
    OLDEST = "oldest"
    SILENT = "silent"
    LATE = "late"
    GROUP = "group"


_KEYS: Final[Mapping[ExpirationOrder, Callable[[Expiration], tuple[Any, ...]]]] = {
    ExpirationOrder.OLDEST: lambda row: (row.seq,),
    ExpirationOrder.SILENT: lambda row: (-(row.silent_ms or 0), -row.seq),
    ExpirationOrder.LATE: lambda row: (-(row.known_late_ms or 0), -row.seq),
    ExpirationOrder.GROUP: lambda row: (row.group_id, -row.seq),
}


class ExpirationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of expirations; empty fields match all.

    Args:
        text: words that must all be in the ids, the client or the host, upper and lower case alike.
        reasons: the reasons to include.
        group: the group's id, exactly.
        member: the member's id, exactly.
        since_ms: appended at or after this, epoch ms.
        until_ms: appended before this, epoch ms.
        order: the order.
        canary: whether to show the canary's too.
    """

    text: str = ""
    reasons: frozenset[str] = frozenset()
    group: str = ""
    member: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    order: ExpirationOrder = ExpirationOrder.NEWEST
    canary: bool = False


class ExpirationPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of expirations.

    Args:
        rows: newest first.
        next: the value of `before` for the next page; `None` on the last one.
        matched: how many match the filter.
        total: how many there are; of a time that is read from a history, how many match.
        older_until_ms: the value of `until_ms` for those that a history has from before this time, epoch ms; `None` if
            it has none, or none was asked for.
    """

    rows: list[Expiration]
    next: str | None
    matched: int
    total: int
    older_until_ms: int | None = None


class ExpirationDetail(Expiration, kw_only=True):
    """An expiration with its explanation: all its fields, and these.

    Args:
        why: what happened, in sentences.
        trigger: the rebalance it caused, if it did and that is known.
        again: how many other times the same worker was expired in the window, by its member, instance or client; of an
            expiration that is read from a history, within a quarter of an hour of it.
    """

    why: list[str]
    trigger: TriggerRow | None
    again: int


class Matching(NamedTuple):
    """The expirations that match a filter.

    Args:
        rows: newest first.
        total: as that of `ExpirationPage`, and likewise `older_until_ms`.
    """

    rows: list[Expiration]
    total: int
    older_until_ms: int | None


def matching(picture: Picture, wanted: ExpirationFilter) -> Matching:
    """Return the expirations that match: those in memory or, of a time that begins before these, from the history.

    Of a group that has none in memory they are from the history, too.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    source, known_ms = picture.lanes, picture.window.known_from_ms
    from_ms = wanted.since_ms or 0
    if source is not None and (wanted.since_ms is not None or wanted.until_ms is not None):
        to_ms = (source.store.newest_ms or 0) + 1 if wanted.until_ms is None else wanted.until_ms
        older = older_picture(picture, from_ms, to_ms, known_ms=known_ms, group_id=wanted.group)
        if older is not None:
            rows = list(_matching(picture, older.window.rows, wanted))
            return Matching(rows, len(rows), older_until_ms(older, older.known_from_ms, from_ms=from_ms))
    with picture.lock:
        rows = list(_matching(picture, picture.window.rows, wanted))
        total = count_expirations(picture, canary=wanted.canary)
    older_ms = older_until_ms(picture, known_ms, from_ms=from_ms)
    if wanted.group and not rows and older_ms is not None and wanted.until_ms is None:
        return matching(picture, msgspec.structs.replace(wanted, until_ms=older_ms))
    return Matching(rows, total, older_ms)


def _matching(picture: Picture, rows: Reversible[Expiration], wanted: ExpirationFilter) -> Iterator[Expiration]:
    words = wanted.text.casefold().split()
    for row in reversed(rows):
        if (
            (wanted.canary or not picture.is_canary(row.group_id))
            and (not wanted.reasons or row.reason in wanted.reasons)
            and (not wanted.group or row.group_id == wanted.group)
            and (not wanted.member or row.member_id == wanted.member)
            and (wanted.since_ms is None or row.append_ms >= wanted.since_ms)
            and (wanted.until_ms is None or row.append_ms < wanted.until_ms)
            and (not words or _has_all(row, words))
        ):
            yield row


def _has_all(row: Expiration, words: list[str]) -> bool:
    names = (row.group_id, row.member_id, row.group_instance_id, row.client_id, row.client_host)
    text = "\n".join(name for name in names if name).casefold()
    return all(word in text for word in words)


def list_expirations(
    picture: Picture, wanted: ExpirationFilter, *, before: int | None = None, limit: int = 100
) -> ExpirationPage:
    """Return a page of expirations.

    Args:
        before: only those whose `seq` is below this; in another order than the newest first, how many to skip.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    found, total, older_until_ms = matching(picture, wanted)
    if wanted.order is ExpirationOrder.NEWEST:
        rest = found if before is None else [row for row in found if row.seq < before]
        rows = list(islice(rest, limit))
        following = str(rows[-1].seq) if len(rest) > len(rows) else None
    else:
        end = (before or 0) + limit
        rows = sorted(found, key=_KEYS[wanted.order])[end - limit : end]
        following = str(end) if end < len(found) else None
    return ExpirationPage(rows=rows, next=following, matched=len(found), total=total, older_until_ms=older_until_ms)


def count_expirations(picture: Picture, *, canary: bool = False) -> int:
    """Return the number of expirations in the window; hold the picture's lock during that."""
    if canary:
        return len(picture.window.rows)
    return sum(not picture.is_canary(row.group_id) for row in picture.window.rows)


def expiration_detail(picture: Picture, id_: str) -> ExpirationDetail | None:
    """Return one expiration with its explanation; `None` if no such id is in the window, or in the history.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    found, at_ms = _detail(picture, id_), logged_ms(id_)
    if found is not None or at_ms is None:
        return found
    known_ms = picture.window.known_from_ms
    older = older_picture(picture, at_ms, at_ms + 1, known_ms=known_ms)
    row = None if older is None else older.window.by_id(id_)
    if row is None:
        return None
    group = older_picture(picture, at_ms, at_ms + 1, known_ms=known_ms, group_id=row.group_id)
    return None if group is None else _detail(group, id_)


def _detail(picture: Picture, id_: str) -> ExpirationDetail | None:
    with picture.lock:
        row = picture.window.by_id(id_)
        if row is None:
            return None
        entry = picture.groups.entries.get(row.group_id)
        of_group = list(entry.expirations) if entry else [row]
        triggers = list(entry.triggers) if entry else []
    fields = {name: getattr(row, name) for name in Expiration.__struct_fields__}
    again = sum(other is not row and is_same_member(other, row) for other in of_group)
    return ExpirationDetail(**fields, why=why(row), trigger=_caused(row, triggers), again=again)


def _caused(row: Expiration, triggers: list[TriggerRow]) -> TriggerRow | None:
    """Return the rebalance that an expiration triggered: a timer fires at its deadline, so both have the same time."""
    at_once = [each for each in triggers if each.time_ms == row.deadline_ms and not each.joined]
    return next((each for each in at_once if each.type != "rebalance_completed"), at_once[0] if at_once else None)
