"""Pages of the timeline: a stretch of time, the groups in which something happened then, the worst first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.readers.live.lane_builder import group_lanes
from heartwheel.readers.live.lane_documents import LanePage, LaneSlot
from heartwheel.readers.live.lane_store import LaneStore, Mark, MarkKind

SLOTS: Final = 120
"""The number of slots that the shown time is divided into."""

_KEPT_S: Final = 60.0


class LanesBusyError(HeartwheelError):
    """Another stretch of time is being read from the history right now."""


ReadOlder = Callable[[int, int, int, str], Any]
"""Reads a stretch of time: at most so many lines, the newest, and those of one group if it is named.

It returns a `Picture`. That has these lanes, so its module cannot be imported here.
"""


class LaneFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time, and which groups of it.

    Args:
        since_ms: its begin, epoch ms; `None`: `last_ms` before its end, or the oldest that is known.
        until_ms: its end, epoch ms; `None`: now, or the end of the log.
        last_ms: its length if it has no begin, ms.
        text: part of the group's id, upper and lower case alike.
        group: a group's id, exactly.
        members: most members of a group.
        removals: most removals of a group.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    last_ms: int | None = None
    text: str = ""
    group: str = ""
    members: int = 8
    removals: int = 4


class LaneSource:
    """The marks of any stretch of time: the newest are in memory, older ones are read when they are asked for.

    Args:
        store: the newest.
        follows: whether the logs are followed, so that the newest time is now; an attribute, until they have ended.
        older: reads what happened in a time that is not in memory; `None` if nothing is older.
        lines_max: most lines that a timeline is drawn from if it is read.
    """

    def __init__(
        self,
        store: LaneStore,
        *,
        follows: bool = False,
        older: ReadOlder | None = None,
        lines_max: int = 0,
    ) -> None:
        self.store, self.follows, self._older, self._lines_max = store, follows, older, lines_max
        self._lock = threading.Lock()
        self._read: tuple[tuple[int, int, int, str], float, Any] | None = None
        """What was read last, and when: it takes some ten MB, so there is one."""

    @property
    def has_older(self) -> bool:
        """Whether a time that is not in memory can be read."""
        return self._older is not None

    def between(self, from_ms: int, to_ms: int, group_id: str = "") -> LaneStore:
        """Return the marks of a time; those of one group at least, if it is named.

        Raises:
            LanesBusyError: another time is being read at the moment.
        """
        known_ms = self.store.known_from_ms
        older = self.older(from_ms, to_ms, known_from_ms=known_ms, lines_max=self._lines_max, group_id=group_id)
        return self.store if older is None or older.lanes is None else older.lanes.store

    def older(self, from_ms: int, to_ms: int, *, known_from_ms: int | None, lines_max: int, group_id: str = "") -> Any:
        """Return what a time has that begins before what is known in memory; `None` if it does not, or nothing is read.

        Args:
            known_from_ms: from when on all is in memory, epoch ms; `None`: from the begin of the logs on.
            lines_max: most lines that are read, the newest.
            group_id: the only group that is read, if it is named.

        Raises:
            LanesBusyError: another time is being read at the moment.
        """
        if self._older is None or known_from_ms is None or from_ms >= known_from_ms:
            return None
        if not self._lock.acquire(timeout=0.5):
            raise LanesBusyError("another time is being read from the history", hint="try again in some seconds")
        try:
            wanted = from_ms, to_ms, lines_max, group_id
            if self._read is None or self._read[0] != wanted or time.monotonic() - self._read[1] > _KEPT_S:
                self._read = None  # its memory is free while the next is read
                self._read = wanted, time.monotonic(), self._older(*wanted)
            return self._read[2]
        finally:
            self._lock.release()


class _Found(NamedTuple):
    """A group that had something happen, in the order of how bad that was: the worst is the least."""

    removals: int
    storms: int
    rebalancing_ms: int
    rebalances: int
    group_id: str


class _Slots:
    """How much was in each slot of a time, of all groups."""

    def __init__(self, from_ms: int, to_ms: int) -> None:
        self._from_ms, self.slot_ms = from_ms, max(1, to_ms - from_ms) / SLOTS
        self._removals, self._rebalances = [0] * SLOTS, [0] * SLOTS

    def add(self, group_id: str, marks: Sequence[Mark], storms: int) -> _Found:
        """Add a group; one pass, because it is that of all groups at each request."""
        removals = lost_ms = rebalances = 0
        from_ms, slot_ms = self._from_ms, self.slot_ms
        for mark in marks:
            kind = mark.kind
            if kind is MarkKind.REMOVED:
                removals += 1
                self._removals[int((mark.time_ms - from_ms) / slot_ms)] += 1
            elif kind is MarkKind.REBALANCE or kind is MarkKind.EMPTY:
                rebalances += 1
                self._rebalances[int((mark.time_ms - from_ms) / slot_ms)] += 1
                lost_ms += 0 if mark.started_ms is None else mark.time_ms - mark.started_ms
        return _Found(-removals, -storms, -lost_ms, -rebalances, group_id)

    def filled(self) -> list[LaneSlot]:
        """Return the slots in which there was anything."""
        both = zip(self._removals, self._rebalances, strict=True)
        return [LaneSlot(at=at, removals=n, rebalances=m) for at, (n, m) in enumerate(both) if n or m]


def lane_page(source: LaneSource, wanted: LaneFilter, *, now_ms: int, before: int = 0, limit: int = 10) -> LanePage:
    """Return a page of the timeline.

    Args:
        before: how many groups to skip.

    Raises:
        LanesBusyError: another time is being read at the moment.
    """
    from_ms, to_ms = _period(source, wanted, now_ms)
    store = source.between(from_ms, to_ms, wanted.group)
    with store.lock:
        slots = _Slots(from_ms, to_ms)
        found = sorted(slots.add(*each) for each in _matching(store, wanted, from_ms, to_ms))
        groups = [
            group_lanes(
                each.group_id,
                store.groups[each.group_id],
                from_ms,
                to_ms,
                lanes_max=wanted.members,
                removals_max=wanted.removals,
            )
            for each in found[before : before + limit]
        ]
    is_older = store is not source.store
    return LanePage(
        from_ms=from_ms,
        to_ms=to_ms,
        is_now=source.follows and wanted.until_ms is None,
        known_from_ms=source.store.known_from_ms,
        read_from_ms=max(from_ms, store.known_from_ms) if is_older and store.known_from_ms is not None else None,
        from_history=is_older,
        groups=groups,
        next=str(before + limit) if len(found) > before + limit else None,
        matched=len(found),
        removals=-sum(each.removals for each in found),
        rebalances=-sum(each.rebalances for each in found),
        storms=-sum(each.storms for each in found),
        slot_ms=slots.slot_ms,
        slots=slots.filled(),
        newest_ms=source.store.newest_ms,
    )


def _period(source: LaneSource, wanted: LaneFilter, now_ms: int) -> tuple[int, int]:
    """Return the begin and the end of the time that is wanted, epoch ms."""
    store = source.store
    newest_ms = 0 if store.newest_ms is None else store.newest_ms + 1
    end_ms = max(newest_ms, now_ms) if source.follows or not newest_ms else newest_ms
    to_ms = end_ms if wanted.until_ms is None else wanted.until_ms
    if wanted.since_ms is not None:
        from_ms = wanted.since_ms
    elif wanted.last_ms is not None:
        from_ms = to_ms - wanted.last_ms
    else:
        from_ms = to_ms - 1 if store.oldest_ms is None else store.oldest_ms
    return min(from_ms, to_ms - 1), to_ms


def _matching(
    store: LaneStore, wanted: LaneFilter, from_ms: int, to_ms: int
) -> Iterator[tuple[str, Sequence[Mark], int]]:
    """Yield the groups that are wanted, with their marks of the time, and the number of their storms."""
    text = wanted.text.casefold()
    for group_id, group in store.groups.items():
        if (wanted.group and group_id != wanted.group) or (text and text not in group_id.casefold()):
            continue
        marks = group.between(from_ms, to_ms)
        if marks or wanted.group:
            yield group_id, marks, len(group.storms(from_ms, to_ms))
