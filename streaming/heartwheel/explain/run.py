"""Read logs from their first line to explained events."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from heartwheel.explain.client_log import ClientLog
from heartwheel.explain.facts import Fact
from heartwheel.explain.file_kind import CONSUMER, Sniffed, kind_of
from heartwheel.explain.follow import follow
from heartwheel.explain.history import History
from heartwheel.explain.layouts import Layout
from heartwheel.explain.local_zone import LocalZone
from heartwheel.explain.opened_log import open_log
from heartwheel.explain.order import in_order
from heartwheel.explain.scan import FactReader, Scanned, scan
from heartwheel.wire.explained import ExplainedEvent


def explain_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    zone: LocalZone | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ExplainedEvent]:
    """Explain whole logs.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for.
        zone: that of times that name none; UTC if absent.
        progress: called with how many bytes were read.

    Returns:
        The events, in the order of time.

    Raises:
        HeartwheelError: if a log cannot be read.
    """
    clients: list[ClientLog] = []
    facts = in_order(_facts(names, scanned, clients, stdin, Layout(zone), progress))
    # The first event of the brokers comes when all logs are read, and only then are those of consumers asked for.
    yield from heapq.merge(History(names).explain(facts), _told_by(clients, scanned), key=lambda event: event.time_ms)


def _told_by(clients: Sequence[ClientLog], scanned: Scanned) -> Iterator[ExplainedEvent]:
    """Return what consumers' own logs say."""
    for event in heapq.merge(*(client.finished() for client in clients), key=lambda event: event.time_ms):
        scanned.note_group(event.group_id)
        scanned.note_time(event.time_ms)
        scanned.zone_assumed = scanned.zone_assumed or event.zone_assumed
        yield event


def follow_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    zone: LocalZone | None = None,
    go_on: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[list[ExplainedEvent]]:
    """Explain logs as they grow.

    A leave that turns out to be a poll timeout is given twice, with the same evidence; the second one holds. So is a
    rebalance that runs for long: once then, and again if it still runs at the end.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for.
        zone: that of times that name none; UTC if absent.
        go_on: asked before each look whether to go on.
        clock: tells how long a rebalance has run while the log stands still, seconds.

    Returns:
        The events of each look, also if there are none.

    Raises:
        HeartwheelError: if a log cannot be read.
    """
    history = History(names, hold_ms=0)
    layout = Layout(zone)
    readers = [FactReader(name, number, layout, scanned) for number, name in enumerate(names)]
    for facts in follow(names, readers, scanned, stdin=stdin, go_on=go_on):
        events = [event for fact in facts for event in history.add(fact)]
        yield [*events, *history.running(int(clock() * 1000))]
    yield list(history.finish())


def _facts(
    names: Sequence[str],
    scanned: Scanned,
    clients: list[ClientLog],
    stdin: BinaryIO,
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
