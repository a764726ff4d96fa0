"""Groups that move from one coordinator to another."""

from __future__ import annotations

from typing import Final

from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.groups import BROKER_START_MS, WatchedGroup
from heartwheel.sources.explain.watch import FollowedLog
from heartwheel.wire.explained import Happened

_SAME_START_MS: Final = 10_000


class Moves:
    """Turns facts about coordinators into events."""

    def __init__(self, watch: FollowedLog) -> None:
        self._watch = watch
        self._started_ms: dict[int, int] = {}
        self._first_ms: dict[int, int] = {}
        self._stopped: set[int] = set()

    def note_read(self, fact: Fact) -> None:
        """Note when the log of a broker begins."""
        self._first_ms.setdefault(fact.broker_id, fact.time_ms)

    def loaded(self, fact: Fact) -> None:
        """Note that a coordinator has loaded a group."""
        group = self._watch.groups.get(fact.group_id)
        before, unloaded = group.broker_id, group.unloaded
        group.group_type = fact.protocol or group.group_type
        group.loaded_ms, group.open, group.unloaded = fact.time_ms, None, None
        group.broker_id = fact.broker_id
        group.roster.loaded(fact.size)
        if fact.number is not None:
            group.generation = fact.number
        if before == fact.broker_id or (before is None and self._is_starting(fact)):
            return
        event = self._watch.event(fact, group, Happened.COORDINATOR_MOVED, "loaded", moved_from=before)
        event.member_count = fact.size
        if unloaded is not None and unloaded.broker_id == before:
            event.started_ms, event.duration_ms = unloaded.time_ms, max(0, fact.time_ms - unloaded.time_ms)
        event.explanation = ("Every member has a whole new session since then, so a death shows later than it would.",)
        self._watch.note(event)

    def _is_starting(self, fact: Fact) -> bool:
        """Return whether a group's first load in the log belongs to the start of its broker."""
        since_ms = max(self._started_ms.get(fact.broker_id, 0), self._first_ms[fact.broker_id])
        return fact.time_ms - since_ms <= BROKER_START_MS

    def unloaded(self, fact: Fact) -> None:
        """Note that a coordinator has unloaded a group."""
        group = self._watch.groups.get(fact.group_id)
        group.unloaded, group.open = fact, None
        group.broker_id = fact.broker_id

    def started(self, fact: Fact) -> None:
        """Note that a broker's coordinator starts."""
        before_ms = self._started_ms.get(fact.broker_id)
        self._started_ms[fact.broker_id] = fact.time_ms
        if before_ms is not None and fact.time_ms - before_ms <= _SAME_START_MS:
            return  # the old coordinator and the new one of one broker
        crashed = before_ms is not None and fact.broker_id not in self._stopped
        self._stopped.discard(fact.broker_id)
        self._broker(fact, Happened.BROKER_STARTED, "not_stopped" if crashed else "started")

    def stopping(self, fact: Fact) -> None:
        """Note that a broker's coordinator stops."""
        if fact.broker_id not in self._stopped:
            self._stopped.add(fact.broker_id)
            self._broker(fact, Happened.BROKER_STOPPED, "stopped")
        self._watch.groups.stopped(fact.broker_id)

    def _broker(self, fact: Fact, kind: Happened, reason: str) -> None:
        """Note that a broker starts or stops, which concerns no single group."""
        self._watch.note(self._watch.event(fact, WatchedGroup(""), kind, reason))

    def finish(self) -> None:
        """Note that unloaded groups were not loaded again, as far as the log goes."""
        for group in self._watch.groups.moved_away():
            assert group.unloaded is not None  # noqa: S101 - `moved_away` returns unloaded groups
            event = self._watch.event(
                group.unloaded, group, Happened.COORDINATOR_MOVED, "unloaded", moved_from=group.unloaded.broker_id
            )
            self._watch.note(event)
