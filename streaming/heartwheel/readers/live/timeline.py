"""The events of a group, one line each, from both topics in one order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypedDict, cast

import msgspec

from heartwheel.base.phrases import count, length
from heartwheel.readers.live.changes import cause_words
from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.logged import LoggedLine
from heartwheel.readers.live.older import older_until_ms, picture_with
from heartwheel.readers.live.picture import Picture
from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import ExpiryReason

TIMELINE_MAX: Final = 200
"""Most lines of a timeline."""

_KIND_OF_TYPE: Final[Mapping[str, str]] = {
    "rebalance_triggered": "triggered",
    "rebalance_completed": "completed",
    "group_empty": "empty",
    "epoch_bumped": "epoch",
    "group_upgraded": "protocol",
    "group_downgraded": "protocol",
}


_OF_EPOCHS: Final = frozenset({"epoch_bumped", "group_upgraded", "group_downgraded"})


class TimelineLine(TypedDict):
    """One line of a timeline: when (epoch ms), its kind, its text; the other fields are those of the topic's row."""

    time_ms: int
    kind: str
    text: str


class TimelinePage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a group's timeline.

    Args:
        rows: newest first.
        next: the value of `before` for older ones; `None` on the last page.
        total: how many lines there are in this time.
        older_until_ms: the value of `until_ms` for those that a history has from before this time, epoch ms; `None` if
            it has none.
    """

    rows: list[TimelineLine]
    next: str | None
    total: int
    older_until_ms: int | None = None


def timeline_of(entry: GroupEntry) -> list[TimelineLine]:
    """Return the events of a group, newest first: each row of the topics with `time_ms`, `kind` and `text` added.

    A worker that comes to or leaves a presence group is one line, not a rebalance that begins and ends at once. One
    that failed before its first heartbeat has no line for its arrival: by the rules it arrives, and fails in the same
    moment. The line of its departure names both generations.
    """
    return _lines_of(entry)[-TIMELINE_MAX:][::-1]


def timeline_page(
    picture: Picture,
    group_id: str,
    *,
    before: int | None = None,
    until_ms: int | None = None,
    limit: int = TIMELINE_MAX,
) -> TimelinePage | None:
    """Return a part of a group's timeline, newest first; `None` if nothing of it is known.

    Args:
        before: only lines whose number is below this.
        until_ms: the end of the time that is shown, epoch ms; `None`: the newest.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    picture = picture_with(picture, group_id, until_ms=until_ms)
    with picture.lock:
        entry = picture.groups.entries.get(group_id)
        lines = [] if entry is None else _lines_of(entry)
        older_ms = older_until_ms(picture, picture.known_from_ms)
    if entry is None:
        return None if until_ms is None else TimelinePage(rows=[], next=None, total=0)
    # Of a time before that some are in memory, and the history has all.
    from_ms, to_ms = older_ms or 0, math.inf if until_ms is None else until_ms
    lines = [line for line in lines if from_ms <= line["time_ms"] < to_ms]
    end = len(lines) if before is None else min(before, len(lines))
    start = max(0, end - limit)
    following = str(start) if start else None
    return TimelinePage(rows=lines[start:end][::-1], next=following, total=len(lines), older_until_ms=older_ms)


def _lines_of(entry: GroupEntry) -> list[TimelineLine]:
    """Return all events of a group, oldest first."""
    # At one moment the expiry comes before the rebalance that it triggers (promise P4), and sorting is stable.
    never_came = {
        (each.deadline_ms, each.member_id)
        for each in entry.expirations
        if each.reason == ExpiryReason.WORKER_FAILED and each.last_seen_ms is None
    }
    lines = [_expired(each) for each in entry.expirations]
    hidden: TriggerRow | None = None
    for row in entry.triggers:
        if row.is_rebalance or row.type != "rebalance_triggered":
            if not row.is_rebalance and (row.time_ms, *row.joined) in never_came:
                hidden = row
                continue
            lines.append(_changed(row, hidden if hidden is not None and hidden.joined == row.removed else None))
            hidden = None
    # A leave is a poll timeout if the member is back under its id, which may be known after the line is there.
    timed_out = {
        (each.deadline_ms, each.member_id) for each in entry.expirations if each.reason == ExpiryReason.POLL_TIMEOUT
    }
    lines += [_logged(each) for each in entry.lines if (each.time_ms, each.member_id) not in timed_out]
    lines.sort(key=lambda line: line["time_ms"])
    return lines


def _logged(line: LoggedLine) -> TimelineLine:
    text = line.text if isinstance(line.text, str) else line.text()
    return TimelineLine(time_ms=line.time_ms, kind=line.kind, text=text)


def _expired(each: Expiration) -> TimelineLine:
    if each.reason == ExpiryReason.WORKER_FAILED:
        text = f"{each.member_id} failed: {each.failure or 'no reason given'}"
    else:
        text = _silenced(each)
    shown = TimelineLine(time_ms=each.deadline_ms, kind="expired", text=text)
    return cast("TimelineLine", msgspec.structs.asdict(each) | shown)


_LOGGED: Final = {
    ExpiryReason.POLL_TIMEOUT: "took itself out: poll timeout",
    ExpiryReason.NOT_A_MEMBER: "was no longer accepted by the coordinator",
    ExpiryReason.NO_ANSWER: "got no answer to its heartbeats for its session timeout, and was likely removed",
}
"""The text of a log's departure that was not an expiry, or not for certain."""


def _silenced(each: Expiration) -> str:
    reason = each.reason.replace("_", " ")
    if each.shard == FROM_A_LOG and each.reason in _LOGGED:
        return f"{each.member_id} {_LOGGED[ExpiryReason(each.reason)]}"
    silent = "" if each.silent_ms is None else f", silent for {length(each.silent_ms)}"
    return f"{each.member_id} expired: {reason}{silent}"


def _changed(row: TriggerRow, arrival: TriggerRow | None) -> TimelineLine:
    is_departure = not row.is_rebalance and row.removed_count > 0
    kind = "left" if is_departure else _KIND_OF_TYPE.get(row.type, row.type)
    shown = TimelineLine(time_ms=row.time_ms, kind=kind, text=_words(row, arrival))
    return cast("TimelineLine", msgspec.structs.asdict(row) | shown)


def _words(row: TriggerRow, arrival: TriggerRow | None) -> str:
    cause = cause_words(row)
    number = (
        f"generation {row.generation_id}"
        if arrival is None
        else f"generations {arrival.generation_id} and {row.generation_id}"
    )
    if row.type in _OF_EPOCHS:
        named = row.joined_count or row.removed_count
        who = f"{_who(row)}: {cause}" if named else f"The group: {cause}"
        return f"{who}{_there(row)}, epoch {row.generation_id}"
    if row.type == "rebalance_completed" and not row.is_rebalance:
        return f"{_who(row)}: {cause}{_there(row)}, {number}"
    if row.type == "rebalance_triggered":
        waiting = f", waiting for {count(row.awaiting_count, 'member')}" if row.awaiting_count else ""
        return f"Rebalance to generation {row.generation_id + 1} begins: {cause}{waiting}"
    if row.type == "rebalance_completed":
        took = f" after {length(row.duration_ms)}" if row.duration_ms else ""
        size = "" if row.member_count is None else f" with {count(row.member_count, 'member')}"
        return f"Generation {row.generation_id} begins{size}{took}: {cause}"
    if not row.is_rebalance:
        return f"{_who(row)}: {cause}, {number}"
    return f"No member is left at generation {row.generation_id}: {cause}"


def _there(row: TriggerRow) -> str:
    """Return the number of members at that time, if it is known."""
    return "" if row.member_count is None else f", {count(row.member_count, 'member')} there"


def _who(row: TriggerRow) -> str:
    """Return the workers that came or left; the first of many."""
    names, all_ = (row.joined, row.joined_count) if row.joined_count else (row.removed, row.removed_count)
    if not names:
        return "A member"
    return names[0] if all_ == 1 else f"{names[0]} and {count(all_ - 1, 'other')}"
