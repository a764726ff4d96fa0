"""Facts of a log in the order of time, turned into explained events.

What a line means depends on those around it: a leave is a poll timeout if its member is back under the same id, an
expiry that follows a static member's leave is its second line, a rebalance has the members it waited for. So events
are held back until what belongs to them has been read, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from heartwheel.explain.arrivals import Arrivals
from heartwheel.explain.departures import Departures
from heartwheel.explain.explanation import advice_of, explain
from heartwheel.explain.facts import Fact, Said
from heartwheel.explain.moves import Moves
from heartwheel.explain.rebalancing import Rebalancing
from heartwheel.explain.watch import Watch
from heartwheel.live.storms import StormRule
from heartwheel.wire.explained import ExplainedEvent

HOLD_MS: Final = 3_600_000
"""How long an event waits for what belongs to it, ms of the log's time: a poll may take that long."""

HELD_MAX: Final = 50_000
"""Most events that wait at once."""

_LOOK_MS: Final = 1_000


class History:
    """Explain facts.

    Args:
        files: names of the logs, by the number that facts have.
        hold_ms: how long events wait for what belongs to them, ms of the log's time; 0 lets them go at once.
        storm: from how many rebalances on a group is in a storm.
    """

    def __init__(self, files: Sequence[str], *, hold_ms: int = HOLD_MS, storm: StormRule | None = None) -> None:
        self._hold_ms = hold_ms
        self._watch = watch = Watch(files)
        arrivals, departures = Arrivals(watch), Departures(watch)
        self._moves = moves = Moves(watch)
        self._end_ms = 0
        self._looked_ms = -_LOOK_MS
        self._rebalances = rebalances = Rebalancing(watch, arrivals, storm or StormRule())
        self._take: dict[Said, Callable[[Fact], None]] = {
            Said.FAILED: departures.failed,
            Said.FENCED: departures.fenced,
            Said.PENDING_EXPIRED: departures.pending_expired,
            Said.PENDING_LEFT: departures.pending_left,
            Said.LEFT: departures.left,
            Said.TEMPORARILY_LEFT: departures.temporarily_left,
            Said.REMOVED_AT_BARRIER: departures.removed_at_barrier,
            Said.TRIGGER: rebalances.triggered,
            Said.STABILIZED: rebalances.stabilized,
            Said.ASSIGNED: rebalances.assigned,
            Said.EMPTY: rebalances.emptied,
            Said.NEW_ID: arrivals.joined,
            Said.JOINED: arrivals.joined,
            Said.REPLACED: arrivals.replaced,
            Said.BUMPED: rebalances.bumped,
            Said.REACHED: rebalances.reached,
            Said.LOADED: moves.loaded,
            Said.UNLOADED: moves.unloaded,
            Said.STARTED: moves.started,
            Said.STOPPING: moves.stopping,
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
        """Take the next fact, and give the events that wait for nothing any more."""
        self._moves.note_read(fact)
        self._end_ms = max(self._end_ms, fact.time_ms)
        take = self._take.get(fact.said)
        if take is not None:
            take(fact)
        until_ms = fact.time_ms - self._hold_ms
        while self._watch.held and (self._watch.held[0].time_ms <= until_ms or len(self._watch.held) > HELD_MAX):
            yield _done(self._watch.held.popleft())

    def running(self, now_ms: int) -> Iterator[ExplainedEvent]:
        """Return, once each, the rebalances that run for long while the log is followed.

        Args:
            now_ms: the time of a clock that never steps, ms.
        """
        if now_ms - self._looked_ms >= _LOOK_MS:
            self._looked_ms = now_ms
            yield from map(_done, self._rebalances.running(self._end_ms, now_ms))

    def finish(self) -> Iterator[ExplainedEvent]:
        """Give the events that still wait, as the log is over."""
        self._moves.finish()
        self._rebalances.finish(self._end_ms)
        for event in sorted(self._watch.held, key=lambda each: each.time_ms):
            yield _done(event)
        self._watch.held.clear()


def _done(event: ExplainedEvent) -> ExplainedEvent:
    event.explanation, event.advice = explain(event), advice_of(event)
    return event
