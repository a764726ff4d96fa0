"""A group: its state, its last events, which members delay a rebalance, and whether it is in a storm."""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec

from heartwheel.readers.live.changes import cause_words
from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.older import older_until_ms, picture_with
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownKind, ShownState, kind_of, state_of, words_of
from heartwheel.readers.live.storms import Storm, StormRule, storm_of
from heartwheel.readers.live.timeline import TimelineLine, timeline_of
from heartwheel.readers.live.trouble import Trouble, troubles_of

EXPIRATIONS_SHOWN_MAX: Final = 100
"""Most expirations that the detail of a group shows."""


class LastChange(msgspec.Struct, frozen=True, kw_only=True):
    """The last change of a group in the triggers topic.

    Args:
        type: as the triggers topic names it, such as `rebalance_triggered` or `epoch_bumped`.
        cause: why the rebalance began, as a code.
        reason: the same in Kafka's own words.
        words: the cause in words for people; for a presence group, which workers came or went.
        time_ms: when, epoch ms; for a completed rebalance, its end.
        began_ms: when it began, epoch ms.
        duration_ms: how long the join phase took, ms; `None` while it lasts, and where there is none.
    """

    type: str
    cause: str | None
    reason: str
    words: str
    time_ms: int
    began_ms: int
    duration_ms: int | None


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """The members that a rebalance waits for.

    Args:
        since_ms: since when, epoch ms; `None` if its begin was not seen.
        deadline_ms: when the members that have not joined, or synced, are removed, epoch ms; `None` if that is not
            known.
        awaiting: the first of the members that have not joined, or synced. Until the shard's next status row these are
            the members that had not joined when it began, without those expired since.
        awaiting_count: how many there are.
        to: what they have to do: `join`, or `sync` once all have joined; `reconcile` with an epoch.
    """

    since_ms: int | None
    deadline_ms: int | None
    awaiting: list[str]
    awaiting_count: int
    to: str = "join"


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a group.

    Args:
        group_id: its name.
        state: as Kafka names it, or `Unknown`.
        state_words: what that means.
        kind: `classic`, `loaded`, `presence`, `consumer`, `share` or `streams`; `None` if its rows have not shown it.
        generation_id: its generation, or its epoch if it goes by member epochs; -1 if that is not known.
        members: its members after the newest rebalance; `None` if that is not known.
        unknown_sessions: how many members joined before their source was read: their session timeouts are not known, so
            they cannot expire before they join again.
        expected: how many it should have, `groups.expected_members`; `None` if that is not configured.
        last: its last change.
        blocked: the members that a rebalance waits for, if one runs.
        storm: the storm it is in, if any.
        troubles: what is wrong with it, the worst first, the storm among them.
        verdict: the verdict of a broker's log, in sentences; empty where none is shown.
        expirations: its expirations in the window.
        last_expired_ms: the newest deadline of them, epoch ms.
        shard: its shard.
        version: rises with every change; the value for `before`.
    """

    group_id: str
    state: ShownState
    state_words: str
    kind: str | None
    generation_id: int
    members: int | None
    unknown_sessions: int
    expected: int | None
    last: LastChange | None
    blocked: Blocked | None
    storm: Storm | None
    troubles: list[Trouble]
    verdict: list[str]
    expirations: int
    last_expired_ms: int | None
    shard: int | None
    version: int


class GroupDetail(Group, kw_only=True, frozen=True):
    """A group with its newest history: all its fields, and these.

    Args:
        timeline: its events, newest first; each row of the topics with `time_ms`, `kind` and `text`.
        expirations: its newest expirations, newest first, in place of their number.
        expirations_count: their number in the window.
        older_until_ms: up to when a history has expirations that are not in the window, epoch ms; `None`: it has none.
    """

    timeline: list[TimelineLine]
    expirations: list[Expiration]  # type: ignore[assignment] # a list of groups counts them, one group shows them
    expirations_count: int
    older_until_ms: int | None = None


def group_of(entry: GroupEntry, rule: StormRule, *, now_ms: int) -> Group:
    """Return the state of a group; hold the picture's lock during that."""
    newest, state, kind = entry.newest, state_of(entry), kind_of(entry)
    unknown = entry.listed.unknown_sessions if entry.listed is not None else 0
    return Group(
        group_id=entry.group_id,
        state=state,
        state_words=" ".join((_state_words(entry, state, kind), *_unknown_words(unknown))),
        kind=kind,
        generation_id=newest.generation_id if newest else -1,
        members=entry.members,
        unknown_sessions=unknown,
        expected=entry.expected,
        last=_last(entry),
        blocked=_blocked(entry),
        storm=storm_of(entry.triggers, entry.expirations, rule, now_ms=now_ms),
        troubles=list(troubles_of(entry, rule, now_ms=now_ms)),
        verdict=entry.verdict,
        expirations=len(entry.expirations),
        last_expired_ms=entry.expirations[-1].deadline_ms if entry.expirations else None,
        shard=entry.shard,
        version=entry.version,
    )


def _state_words(entry: GroupEntry, state: ShownState, kind: ShownKind | None) -> str:
    return words_of(state, kind, logged=entry.shard == FROM_A_LOG, of_consumers=entry.of_consumers)


def _unknown_words(unknown: int) -> list[str]:
    if not unknown:
        return []
    who = "1 member is unknown: it" if unknown == 1 else f"{unknown:,} members are unknown: they"
    whose = "its session is" if unknown == 1 else "their sessions are"
    return [f"{who} joined before the tap, and {whose} not in the log. No verdict is guessed."]


def _last(entry: GroupEntry) -> LastChange | None:
    newest = entry.newest
    if newest is None:
        return None
    # A completion shows how the rebalance ended; people ask why it began.
    begun = entry.begun if entry.begun is not None and newest.type == "rebalance_completed" else newest
    # No member joins when a group becomes empty or a worker comes and goes: nothing there takes time.
    duration_ms = newest.duration_ms if newest.is_rebalance and newest.type != "group_empty" else None
    return LastChange(
        type=newest.type,
        cause=begun.cause,
        reason=begun.reason,
        words=cause_words(begun),
        time_ms=newest.time_ms,
        began_ms=newest.time_ms - (duration_ms or 0),
        duration_ms=duration_ms,
    )


_TO_DO: Final = {ShownState.COMPLETING_REBALANCE: "sync", ShownState.RECONCILING: "reconcile"}


def _blocked(entry: GroupEntry) -> Blocked | None:
    newest, rebalance = entry.newest, entry.running
    to = _TO_DO.get(state_of(entry), "join")
    if rebalance is not None and rebalance.awaiting_count is not None:
        return Blocked(
            since_ms=newest.time_ms if newest else None,
            deadline_ms=rebalance.deadline_ms,
            awaiting=list(rebalance.awaiting),
            awaiting_count=rebalance.awaiting_count,
            to=to,
        )
    if newest is None or newest.type != "rebalance_triggered" or newest.shard == FROM_A_LOG:
        return None  # a log does not show which members a rebalance waits for
    gone = {each.member_id for each in entry.expirations if each.deadline_ms >= newest.time_ms}
    awaiting = [member_id for member_id in newest.awaiting if member_id not in gone]
    return Blocked(
        since_ms=newest.time_ms,
        deadline_ms=newest.deadline_ms,
        awaiting=awaiting,
        awaiting_count=newest.awaiting_count - (len(newest.awaiting) - len(awaiting)),
    )


def storms(picture: Picture, rule: StormRule, *, now_ms: int, canary: bool = False) -> list[tuple[str, Storm]]:
    """Return the groups that are in a storm, the worst first; hold the picture's lock during that."""
    found = []
    for entry in reversed(picture.groups.entries.values()):
        if entry.newest is not None and len(entry.triggers) >= rule.rebalances:
            storm = storm_of(entry.triggers, entry.expirations, rule, now_ms=now_ms)
            if storm is not None and (canary or not picture.is_canary(entry.group_id)):
                found.append((entry.group_id, storm))
    return sorted(found, key=lambda each: -each[1].count)


def group_detail(picture: Picture, group_id: str, rule: StormRule, *, now_ms: int) -> GroupDetail | None:
    """Return a group with its newest history; `None` if nothing of it was seen.

    Raises:
        LanesBusyError: another time is being read from the history at the moment.
    """
    picture = picture_with(picture, group_id)
    with picture.lock:
        entry = picture.groups.entries.get(group_id)
        if entry is None:
            return None
        group = group_of(entry, rule, now_ms=now_ms)
        timeline = timeline_of(entry)
        newest = list(islice(reversed(entry.expirations), EXPIRATIONS_SHOWN_MAX))
        older_ms = older_until_ms(picture, picture.window.known_from_ms)
    fields = {name: getattr(group, name) for name in Group.__struct_fields__}
    fields |= {"timeline": timeline, "expirations": newest, "expirations_count": group.expirations}
    fields["older_until_ms"] = older_ms
    return GroupDetail(**fields)
