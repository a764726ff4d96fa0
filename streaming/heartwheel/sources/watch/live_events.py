"""The events of a history as it grows, for page, metrics and messages."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.follow import InTurn
from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.wire.explained import ExplainedEvent

_AT_ONCE: Final = 1_000
"""Most events in memory at once: with their sentences they are large, and what they take stays with the process."""

_SORTED_AT_ONCE: Final = 4_000
"""Most facts in memory while those of the history are sorted: what they take stays with the process."""


class LiveEvents:
    """Explains the facts of a history: first those that it has, then new ones, in the order of time.

    Args:
        history: where the facts are.
        files: names of the logs, by the number that facts have; may grow.
        logs: how many logs there are.
        storm: the number of rebalances at which a group is in a storm.
        causes: what happened to pods and machines; may grow.
        after: the number of the newest fact of the history that is not explained; 0 if all are.
        joined: called with each member that joins.
        clock: a clock that never steps, seconds.
    """

    def __init__(
        self,
        history: HistoryFile,
        files: Mapping[int, str],
        *,
        logs: int,
        storm: StormRule,
        after: int,
        joined: Callable[[MemberJoined], None] | None = None,
        causes: Causes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._history, self._after, self._clock = history, after, clock
        self._explains = History(files, hold_ms=0, storm=storm, joined=joined, causes=causes)
        self._in_turn = InTurn(logs)
        self._explained = history.newest
        left_out_ms = history.newest_ms(after)
        self.known_from_ms = None if left_out_ms is None else left_out_ms + 1
        """From when on all facts are explained, epoch ms; `None`: from the begin of the history on."""
        self._came: deque[tuple[float, int]] = deque()
        """When facts came, and the number of the newest of them."""

    @property
    def explained(self) -> int:
        """The number of the newest fact of which all events were returned, and of all facts before it."""
        return self._explained

    def kept(self, since: int) -> Iterator[tuple[list[ExplainedEvent], bool]]:
        """Return the events of the facts that the history had at first, some at a time.

        Args:
            since: the number of the newest fact whose events were reported before.

        Returns:
            Each time some events, and whether they are news: of lines that were read later than that, in a log that
            was known.
        """
        facts = (each for each in self._history.facts(self._after) if each.number <= self._explained)
        news: list[Fact] = []

        def reported() -> Iterator[Fact]:
            for number, is_news, fact in facts:
                if is_news and number > since:
                    news.append(fact)
                else:
                    yield fact

        for some, is_news in ((reported(), False), (news, True)):
            ordered = in_order(some, facts_max=_SORTED_AT_ONCE)
            events = (event for fact in ordered for event in self._explains.add(fact))
            while part := list(islice(events, _AT_ONCE)):
                yield part, is_news

    def add(self, facts: Sequence[Fact], newest: int) -> None:
        """Add facts that the history has since then.

        Args:
            facts: in any order.
            newest: the number of the newest of them.
        """
        if facts:
            now_s = self._clock()
            self._in_turn.add(facts, now_s)
            self._came.append((now_s, newest))

    def ready(self) -> Iterator[list[ExplainedEvent]]:
        """Return the events whose wait for earlier ones is over, and those of rebalances that run for long.

        Returns:
            Some at a time, the last of them perhaps none; `explained` counts their facts from the last on.
        """
        now_s = self._clock()
        ready, explained = self._in_turn.ready(now_s), self._explained
        while self._came and self._in_turn.is_over(self._came[0][0], now_s):
            explained = self._came.popleft()[1]
        of_facts = (event for fact in ready for event in self._explains.add(fact))
        events = chain(of_facts, self._explains.running(int(now_s * 1000)))
        while len(part := list(islice(events, _AT_ONCE))) == _AT_ONCE:
            yield part
        self._explained = explained
        yield part
