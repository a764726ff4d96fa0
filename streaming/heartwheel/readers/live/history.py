"""The last events of a member and the gaps between them, read from the heartbeat topic on demand."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from itertools import pairwise
from typing import Any, Final, TypeVar

from heartwheel.base.phrases import count
from heartwheel.readers.live.expiration import last_alive_ms
from heartwheel.readers.live.history_documents import (
    Gap,
    GroupTail,
    HistoryBusyError,
    HistoryEvent,
    MemberHistory,
    MemberSeen,
)
from heartwheel.readers.live.scan import READ_ERRORS, Beat, Scan, ScanBounds
from heartwheel.settings import Settings
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdict_rows import ExpirationRow
from heartwheel.wire.verdicts import ExpiryReason

EVENTS_MAX: Final = 500
"""Most events of a member that are shown."""

MEMBERS_MAX: Final = 200
"""Most members of a group that are shown."""

READERS_MAX: Final = 2
"""Most concurrent readers: each costs a connection and some of a core."""

_WAIT_S: Final = 3.0
_KEPT_MS: Final = 5_000
_KEPT_MAX: Final = 64
_TAIL_RECORDS: Final = 50_000
_TAIL_MS: Final = 120_000
_AROUND_MS_MIN: Final = 60_000
_AROUND_MS_MAX: Final = 600_000
_SESSIONS_BEFORE: Final = 5

T = TypeVar("T")


class HistoryReader:
    """A reader of the heartbeat topic on demand: few requests at once, each within limits, answers cached for seconds.

    Args:
        settings: where Kafka is.
        bounds: what one read may cost.
    """

    def __init__(self, settings: Settings, bounds: ScanBounds = ScanBounds()) -> None:  # noqa: B008 - an immutable tuple
        self._settings, self._bounds = settings, bounds
        self._readers = threading.BoundedSemaphore(READERS_MAX)
        self._kept: OrderedDict[Hashable, tuple[int, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def member(self, group_id: str, member_id: str, *, newest: ExpirationRow | None, now_ms: int) -> MemberHistory:
        """Return the events of a member.

        Args:
            newest: its newest expiration; with `None` its latest events are read.

        Raises:
            HistoryBusyError: too many requests are reading at the moment.
        """
        key = (group_id, member_id, newest.id if newest else "")
        return self._keep(key, now_ms, lambda: self._member(group_id, member_id, newest, now_ms))

    def tail(self, group_id: str, *, now_ms: int) -> GroupTail:
        """Return the members of a group that sent something lately.

        Raises:
            HistoryBusyError: too many requests are reading at the moment.
        """
        return self._keep((group_id,), now_ms, lambda: self._tail(group_id, now_ms))

    def _keep(self, key: Hashable, now_ms: int, read: Callable[[], T]) -> T:
        known: T | None = self._known(key, now_ms)
        if known is not None:
            return known
        if not self._readers.acquire(timeout=_WAIT_S):
            raise HistoryBusyError("too many read heartbeats at the moment", hint="try again in some seconds")
        try:
            known = self._known(key, now_ms)  # a request that waited may find the answer of the one before
            found = read() if known is None else known
        finally:
            self._readers.release()
        with self._lock:
            self._kept[key] = (now_ms, found)
            while len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
        return found

    def _known(self, key: Hashable, now_ms: int) -> Any:
        with self._lock:
            at_ms, found = self._kept.get(key, (now_ms, None))
        return found if now_ms - at_ms < _KEPT_MS else None

    def _member(self, group_id: str, member_id: str, newest: ExpirationRow | None, now_ms: int) -> MemberHistory:
        scan = Scan(self._settings.kafka, group_id, self._bounds)
        from_ms, to_ms = _stretch(newest, now_ms)
        try:
            return member_history(member_id, scan.between(from_ms, to_ms), newest, lambda: scan.cut)
        except READ_ERRORS as error:
            return MemberHistory.nothing(_unread(error))

    def _tail(self, group_id: str, now_ms: int) -> GroupTail:
        scan = Scan(self._settings.kafka, group_id, self._bounds)
        try:
            members = members_seen(scan.tail(_TAIL_RECORDS, now_ms - _TAIL_MS))
        except READ_ERRORS as error:
            return GroupTail(members=[], note=_unread(error))
        cut = [scan.cut] if scan.cut else []
        if len(members) > MEMBERS_MAX:
            cut.append(f"The {MEMBERS_MAX} latest of {count(len(members), 'member')} are shown.")
        return GroupTail(members=members[:MEMBERS_MAX], note=" ".join(cut))


def _stretch(newest: ExpirationRow | None, now_ms: int) -> tuple[int, int]:
    """Return the time to read: some sessions before the silence, and as long after it."""
    if newest is None:
        return now_ms - _TAIL_MS, now_ms
    around_ms = min(max(_SESSIONS_BEFORE * newest.session_timeout_ms, _AROUND_MS_MIN), _AROUND_MS_MAX)
    last_ms = last_alive_ms(newest)
    from_ms = newest.deadline_ms if last_ms is None else last_ms
    return from_ms - around_ms, min(now_ms, newest.deadline_ms + around_ms)


def _unread(error: Exception) -> str:
    return f"Its heartbeats could not be read: {str(error).partition(chr(10))[0] or type(error).__name__}."


def member_history(
    member_id: str, beats: Iterable[Beat], newest: ExpirationRow | None, cut: Callable[[], str]
) -> MemberHistory:
    """Return a member's events and the gaps between them.

    Args:
        beats: events of its group, the oldest first.
        cut: called after all is read; returns why not everything was.
    """
    events: deque[HistoryEvent] = deque(maxlen=EVENTS_MAX)
    found, timeout_ms = 0, newest.session_timeout_ms if newest else None
    for at_ms, event in beats:
        if is_about(event, member_id):
            found += 1
            reason = _reason(event, member_id)
            failure = event.failure if event.type is EventType.LEAVE else None
            events.append(
                HistoryEvent(
                    at_ms=at_ms, type=event.type, generation_id=event.generation_id, reason=reason, failure=failure
                )
            )
            if newest is None:
                timeout_ms = event.session_timeout_ms or timeout_ms
    notes = [cut()] if cut() else []
    if found > len(events):
        notes.append(f"The newest {len(events)} of {found:,} events are shown.")
    if newest is not None and not events and not notes:
        notes.append("The heartbeat topic holds no event of this member from that time: kept for too short, perhaps.")
    return MemberHistory(
        events=list(events),
        gaps=[Gap(from_ms=a.at_ms, to_ms=b.at_ms, gap_ms=b.at_ms - a.at_ms) for a, b in pairwise(events)],
        session_timeout_ms=timeout_ms,
        deadline_ms=newest.deadline_ms if newest and newest.reason != ExpiryReason.WORKER_FAILED else None,
        truncated=found > len(events) or bool(cut()),
        note=" ".join(notes),
    )


def is_about(event: Event, member_id: str) -> bool:
    """Return whether an event is about a member: sent by it, answered with its id, or its leave."""
    if member_id in {event.member_id, event.assigned_member_id}:
        return True
    return any(leaver.member_id == member_id for leaver in event.leaving)


def members_seen(beats: Iterable[Beat]) -> list[MemberSeen]:
    """Return the members with the number of their events, those seen last first."""
    last_ms: dict[str, int] = {}
    counts: dict[str, int] = {}
    left: dict[str, str | None] = {}
    failed: dict[str, str | None] = {}
    for at_ms, event in beats:
        member_id = event.member_id or event.assigned_member_id
        for each in (member_id, *(leaver.member_id for leaver in event.leaving)):
            if each:
                last_ms[each] = at_ms
                counts[each] = counts.get(each, 0) + 1
                leaves = event.type is EventType.LEAVE
                failed[each] = event.failure if leaves else None
                left[each] = (_reason(event, each) or "") if leaves and event.failure is None else None
    ordered = sorted(last_ms, key=lambda member_id: (-last_ms[member_id], member_id))
    return [
        MemberSeen(member_id=each, last_seen_ms=last_ms[each], beats=counts[each], left=left[each], failed=failed[each])
        for each in ordered
    ]


def _reason(event: Event, member_id: str) -> str | None:
    """Return the client's words for what a member did; in a leave of many, each may have its own."""
    return next((one.reason for one in event.leaving if one.member_id == member_id), None) or event.reason
