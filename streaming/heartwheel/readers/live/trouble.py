"""Groups in trouble: without members, in a storm of rebalances, with members that keep failing or poll too late.

These are problems of the groups, not of the engine: a healthy engine reports groups that are not healthy.

A long rebalance is no trouble by itself: members have their rebalance timeout to join again, and a member that takes
longer is expired, which is a late poll. The demo's group `invoices` waits for one member for 25 s of every 100 s.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from heartwheel.base.phrases import ago, count, setting
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import ShownState, state_of
from heartwheel.readers.live.storms import Offender, StormRule, name_of, offenders_of, storm_of
from heartwheel.wire.events import JOB, JOB_RUN
from heartwheel.wire.verdicts import PRESENCE, ExpiryReason

WINDOW_MS: Final = 900_000
"""For how long expirations count, ms: three poll intervals of the default length."""

FLAPS_MIN: Final = 3
"""The number of expirations of one worker in that time that counts as flapping."""

LATE_POLLS_MIN: Final = 2
"""The number of late polls in one group in that time that counts as trouble: one may be a single slow record."""

TROUBLED_MAX: Final = 50
"""Most groups that are named."""

_LATE_POLLS: Final = frozenset(
    {ExpiryReason.POLL_TIMEOUT, ExpiryReason.REBALANCE_TIMEOUT, ExpiryReason.REVOCATION_TIMEOUT}
)
"""Timers that expire only members that are slow between two polls."""


class TroubleKind(enum.StrEnum):
    """A kind of trouble of a group, the worst first."""

    EMPTY = "empty"
    OVERDUE = "overdue"
    """The only job of a group has not run, or not ended, in its time; the group is empty for no other reason."""
    TOO_FEW = "too_few"
    STORM = "storm"
    FLAPPING = "flapping"
    LATE_POLLS = "late_polls"


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of a group.

    Args:
        kind: what it is.
        words: the problem in words, without the group's name.
        count: for an empty group, or one whose job is overdue, its expired members that are not back; for too few
            members, how many are missing; for a storm, its rebalances; for flapping, the expirations of the worst
            member; for late polls, their number.
        since_ms: since when the group is empty, epoch ms; `None` for the other kinds.
        offenders: members that were expired more than once, the worst first.
    """

    kind: TroubleKind
    words: str
    count: int
    since_ms: int | None = None
    offenders: list[Offender] = []


class TroubledGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group in trouble, and its problems, the worst first."""

    group_id: str
    troubles: list[Trouble]


class GroupsInTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """The groups in trouble.

    Args:
        known: whether an engine processes the groups, and at least one is known; otherwise this is the last known
            state.
        count: how many there are.
        sentence: the same for people.
        groups: the worst first, at most `TROUBLED_MAX`.
    """

    known: bool
    count: int
    sentence: str
    groups: list[TroubledGroup]


def groups_in_trouble(
    picture: Picture, rule: StormRule, *, now_ms: int, canary: bool = False, known: bool = True, present: bool = False
) -> GroupsInTrouble:
    """Return the groups that are in trouble; hold the picture's lock during that.

    Args:
        known: whether an engine processes the groups at that moment.
        present: whether the troubles that a broker's log had at any time do not count.
    """
    entries = {name: each for name, each in picture.groups.entries.items() if canary or not picture.is_canary(name)}
    if known and not entries and not picture.log:
        return GroupsInTrouble(known=False, count=0, sentence="No group known yet", groups=[])
    found = [
        TroubledGroup(group_id=name, troubles=troubles)
        for name, entry in entries.items()
        if (troubles := list(troubles_of(entry, rule, now_ms=now_ms, present=present)))
    ]
    found.sort(key=lambda each: (*worst_of(each.troubles), each.group_id))
    return GroupsInTrouble(
        known=known, count=len(found), sentence=_sentence(len(found), known=known), groups=found[:TROUBLED_MAX]
    )


def _sentence(number: int, *, known: bool) -> str:
    if known:
        return f"{count(number, 'group') if number else 'No group'} in trouble"
    before = f"; {count(number, 'group')} {'was' if number == 1 else 'were'} before" if number else ""
    return f"Not known which groups are in trouble{before}"


def worst_of(troubles: Sequence[Trouble]) -> tuple[int, int]:
    """Return the sort key of groups, the worst being the least: the kind of the worst trouble, and its count."""
    kinds = list(TroubleKind)
    return (kinds.index(troubles[0].kind), -troubles[0].count) if troubles else (len(kinds), 0)


def troubles_of(entry: GroupEntry, rule: StormRule, *, now_ms: int, present: bool = False) -> Iterator[Trouble]:
    """Yield the problems of a group, the worst first.

    Args:
        present: whether those that a broker's log had at any time do not count.
    """
    if entry.logged_troubles is not None and not present:
        yield from entry.logged_troubles
        return
    late = [each for each in entry.expirations if each.deadline_ms >= now_ms - WINDOW_MS]
    for trouble in (
        _empty(entry, now_ms),
        _too_few(entry),
        _storm(entry, rule, now_ms),
        _flapping(late),
        _late_polls(late),
    ):
        if trouble is not None:
            yield trouble


def _empty(entry: GroupEntry, now_ms: int) -> Trouble | None:
    """Return a trouble if a group lost its last member by expiry; one whose last member left is empty on purpose."""
    newest, last = entry.newest, entry.emptied_by
    if newest is None or last is None or last.returned_ms is not None or state_of(entry) is not ShownState.EMPTY:
        return None
    missing = len({each.member_id for each in (last, *entry.expirations) if each.returned_ms is None})
    overdue = _overdue(last, now_ms)
    words = [overdue or f"no members for {ago(newest.time_ms, now_ms)}"]
    if missing > 1 or not overdue:
        words.append(f"{count(missing, 'expired member')} not back")
    return Trouble(
        kind=TroubleKind.OVERDUE if overdue else TroubleKind.EMPTY,
        words="; ".join(words),
        count=missing,
        since_ms=newest.time_ms,
    )


def _overdue(last: Expiration, now_ms: int) -> str:
    """Return what an overdue job has not done in time; empty if the member is no job."""
    if last.group_kind != PRESENCE or last.reason != ExpiryReason.SESSION_TIMEOUT:
        return ""  # a consumer may have any client id
    if last.last_seen_ms is None or last.session_timeout_ms is None:
        return ""
    since, within = ago(last.last_seen_ms, now_ms), setting(last.session_timeout_ms)
    if last.client_id == JOB:
        return f"no run for {since}; one was expected within {within}"
    return f"a run has been silent for {since}; its limit is {within}" if last.client_id == JOB_RUN else ""


def _too_few(entry: GroupEntry) -> Trouble | None:
    """Return a trouble if a group has fewer members than are expected of it."""
    there = entry.members
    if entry.expected is None or there is None or there >= entry.expected:
        return None
    words = f"{there:,} of {count(entry.expected, 'member')}"
    return Trouble(kind=TroubleKind.TOO_FEW, words=words, count=entry.expected - there)


def _storm(entry: GroupEntry, rule: StormRule, now_ms: int) -> Trouble | None:
    if len(entry.triggers) < rule.rebalances:
        return None
    storm = storm_of(entry.triggers, entry.expirations, rule, now_ms=now_ms)
    if storm is None:
        return None
    return Trouble(
        kind=TroubleKind.STORM,
        words=f"{count(storm.count, 'rebalance')} in {setting(storm.window_ms)}, "
        f"the first by: {storm.first_cause.replace('_', ' ')}",
        count=storm.count,
        offenders=storm.offenders,
    )


def _flapping(late: Sequence[Expiration]) -> Trouble | None:
    flapping = [each for each in offenders_of(late) if each.count >= FLAPS_MIN]
    if not flapping:
        return None
    worst = flapping[0]
    more = f" and {count(len(flapping) - 1, 'other')}" if len(flapping) > 1 else ""
    return Trouble(
        kind=TroubleKind.FLAPPING,
        words=f"{worst.member_id} expired {count(worst.count, 'time')} in {setting(WINDOW_MS)}{more}",
        count=worst.count,
        offenders=flapping,
    )


def _late_polls(late: Sequence[Expiration]) -> Trouble | None:
    slow = [each for each in late if each.reason in _LATE_POLLS]
    if len(slow) < LATE_POLLS_MIN:
        return None
    members = len({name_of(each) for each in slow})
    often = "" if members == len(slow) else f", {count(len(slow), 'time')}"
    return Trouble(
        kind=TroubleKind.LATE_POLLS,
        words=f"{count(members, 'member')} did not poll in time{often} in {setting(WINDOW_MS)}",
        count=len(slow),
        offenders=offenders_of(slow),
    )
