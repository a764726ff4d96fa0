"""Read logs from their first line to explained events."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.client_log import ClientLog
from heartwheel.sources.explain.duplicates import BrokersLines
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.file_kind import CONSUMER, Sniffed, kind_of
from heartwheel.sources.explain.follow import follow
from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.opened_log import open_log
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.wire.explained import ExplainedEvent


def explain_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO | None,
    zone: LocalZone | None = None,
    progress: Callable[[int], None] | None = None,
    joined: Callable[[MemberJoined], None] | None = None,
    causes: Causes | None = None,
) -> Iterator[ExplainedEvent]:
    """Explain whole logs.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for; `None` where all names are those of files.
        zone: the zone of times that name none; UTC if absent.
        progress: called with the number of bytes read.
        joined: called with each member that joins, in a broker's log.
        causes: what happened to pods and machines.

    Returns:
        The events, in the order of time. An event in both a broker's and a consumer's log is taken from the broker's.

    Raises:
        HeartwheelError: a log cannot be read.
    """
    clients: list[ClientLog] = []
    facts = in_order(_facts(names, scanned, clients, stdin, Layout(zone), progress))
    # The brokers' first event comes when all logs are read, and only then are the consumers' events requested.
    brokers = BrokersLines()
    history = History(names, joined=joined, causes=causes).explain(brokers.noting(facts))
    for event in heapq.merge(history, _told_by(clients, scanned), key=lambda event: event.time_ms):
        if not brokers.have(event):
            yield event


def _told_by(clients: Sequence[ClientLog], scanned: Scanned) -> Iterator[ExplainedEvent]:
    """Return the events of consumers' own logs."""
    for event in heapq.merge(*(client.finished() for client in clients), key=lambda event: event.time_ms):
        scanned.note_group(event.group_id)
        scanned.note_time(event.time_ms)
        scanned.zone_assumed = scanned.zone_assumed or event.zone_assumed
        yield event


def follow_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO | None,
    zone: LocalZone | None = None,
    go_on: Callable[[], bool] = lambda: True,
    causes: Causes | None = None,
    clock: Callable[[], float] = time.monotonic,
    joined: Callable[[MemberJoined], None] | None = None,
) -> Iterator[list[ExplainedEvent]]:
    """Explain logs as they grow.

    A leave that turns out to be a poll timeout is returned twice, with the same evidence; the second one holds. So is a
    rebalance that runs for long: once while it runs, and again if it still runs at the end.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for; `None` where all names are those of files.
        zone: that of times that name none; UTC if absent.
        go_on: asked before each look whether to go on.
        causes: what happened to pods and machines.
        clock: measures how long a rebalance has run while the log has no new lines, seconds.
        joined: called with each member that joins.

    Returns:
        The events of each look, also if there are none.

    Raises:
        HeartwheelError: if a log cannot be read.
    """
    history = History(names, hold_ms=0, joined=joined, causes=causes)
    layout = Layout(zone)
    readers = [partial(FactReader, name, number, layout, scanned) for number, name in enumerate(names)]
    for facts in follow(names, readers, scanned, stdin=stdin, go_on=go_on):
        events = [event for fact in facts for event in history.add(fact)]
        yield [*events, *history.running(int(clock() * 1000))]
    yield list(history.finish())


def _facts(
    names: Sequence[str],
    scanned: Scanned,
    clients: list[ClientLog],
    stdin: BinaryIO | None,
    layout: Layout,
    progress: Callable[[int], None] | None,
) -> Iterator[Fact]:
    for number, name in enumerate(names):
        stream = open_log(name, stdin)
        before = scanned.coordinator_lines
        client = ClientLog(name, layout.zone)
        log = Sniffed(stream, client, scanned)
        try:
            yield from scan(log, FactReader(name, number, layout, scanned), scanned, progress)
        finally:
            if stream is not stdin:
                stream.close()
        if scanned.coordinator_lines > before:
            continue
        scanned.client_lines += client.matched
        scanned.others[name] = CONSUMER if client.matched else kind_of(name, log.head)
        clients.append(client)
