"""Facts of a log in the order of time, turned into explained events.

The meaning of a line depends on the lines around it: a leave is a poll timeout if its member is back under the same id,
an expiry that follows a static member's leave is its second line, a rebalance has the members it waited for. So events
are held back, in bounded memory, until the lines that belong to them have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.arrivals import LoggedArrivals
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.departures import LoggedDepartures
from heartwheel.sources.explain.explanation import explained, explained_copy
from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.moves import Moves
from heartwheel.sources.explain.rebalancing import LoggedRebalances
from heartwheel.sources.explain.watch import FollowedLog
from heartwheel.wire.explained import ExplainedEvent

HOLD_MS: Final = 3_600_000
"""How long an event waits for lines that belong to it, ms of the log's time: a poll may take that long."""

WAITING_MAX: Final = 50_000
"""Most events that wait at the same time."""

_LOOK_MS: Final = 1_000


class History:
    """Turns facts into explained events.

    Args:
        files: names of the logs, by the number that facts have.
        hold_ms: how long events wait for lines that belong to them, ms of the log's time; with 0 they do not wait.
        storm: the number of rebalances at which a group is in a storm.
        joined: called with each member that joins, as soon as that is read: it is no event. It is also called with
            the returns from removals that were returned before, so with it, as without a wait, events are copies, which
            do not change with what later lines show.
        causes: what happened to pods and machines; may grow.
    """

    def __init__(
        self,
        files: Sequence[str] | Mapping[int, str],
        *,
        hold_ms: int = HOLD_MS,
        storm: StormRule | None = None,
        joined: Callable[[MemberJoined], None] | None = None,
        causes: Causes | None = None,
    ) -> None:
        self._hold_ms, self._causes = hold_ms, causes
        self._copies = not hold_ms or joined is not None
        self._watch = watch = FollowedLog(files, joined)
        arrivals, departures = LoggedArrivals(watch), LoggedDepartures(watch)
        self._moves = moves = Moves(watch)
        self._end_ms = 0
        self._looked_ms = -_LOOK_MS
        self._rebalances = rebalances = LoggedRebalances(watch, arrivals, storm or StormRule())
        self._take: dict[FactKind, Callable[[Fact], None]] = {
            FactKind.FAILED: departures.failed,
            FactKind.FENCED: departures.fenced,
            FactKind.PENDING_EXPIRED: departures.pending_expired,
            FactKind.PENDING_LEFT: departures.pending_left,
            FactKind.LEFT: departures.left,
            FactKind.TEMPORARILY_LEFT: departures.temporarily_left,
            FactKind.REMOVED_AT_BARRIER: departures.removed_at_barrier,
            FactKind.TRIGGER: rebalances.triggered,
            FactKind.STABILIZED: rebalances.stabilized,
            FactKind.ASSIGNED: rebalances.assigned,
            FactKind.EMPTY: rebalances.emptied,
            FactKind.NEW_ID: arrivals.joined,
            FactKind.JOINED: arrivals.joined,
            FactKind.REPLACED: arrivals.replaced,
            FactKind.BUMPED: rebalances.bumped,
            FactKind.REACHED: rebalances.reached,
            FactKind.LOADED: moves.loaded,
            FactKind.UNLOADED: moves.unloaded,
            FactKind.STARTED: moves.started,
            FactKind.STOPPING: moves.stopping,
        }

    def explain(self, facts: Iterable[Fact]) -> Iterator[ExplainedEvent]:
        """Explain all facts of some logs.

        Args:
            facts: in the order of time.

        Returns:
            The events, in the order of time.
        """
        for fact in facts:
            yield from self.add(fact)
        yield from self.finish()

    def add(self, fact: Fact) -> Iterator[ExplainedEvent]:
        """Add the next fact, and return the events that need not wait any longer."""
        self._moves.note_read(fact)
        self._end_ms = max(self._end_ms, fact.time_ms)
        take = self._take.get(fact.kind)
        if take is not None:
            take(fact)
        until_ms = fact.time_ms - self._hold_ms
        waiting = self._watch.waiting
        while waiting and (waiting[0].time_ms <= until_ms or len(waiting) > WAITING_MAX):
            yield self._done(self._watch.take_first())

    def running(self, now_ms: int) -> Iterator[ExplainedEvent]:
        """Return, once each, the rebalances that have been running for long while the log is followed.

        Args:
            now_ms: the time of a clock that never steps, ms.
        """
        if now_ms - self._looked_ms >= _LOOK_MS:
            self._looked_ms = now_ms
            yield from map(self._done, self._rebalances.running(self._end_ms, now_ms))

    def finish(self) -> Iterator[ExplainedEvent]:
        """Return the events that still wait, because the log is over."""
        self._moves.finish()
        self._rebalances.finish(self._end_ms)
        for event in sorted(self._watch.take_all(), key=lambda each: each.time_ms):
            yield self._done(event)

    def _done(self, event: ExplainedEvent) -> ExplainedEvent:
        event.causes = self._causes.of(event) if self._causes is not None else ()
        return explained_copy(event) if self._copies else explained(event)
