"""Read logs from their first line to explained events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from heartwheel.explain.facts import Fact
from heartwheel.explain.follow import follow
from heartwheel.explain.history import History
from heartwheel.explain.layouts import Layout
from heartwheel.explain.opened_log import open_log
from heartwheel.explain.order import in_order
from heartwheel.explain.scan import FactReader, Scanned, scan
from heartwheel.wire.explained import ExplainedEvent


class Wanted(NamedTuple):
    """Say which events are wanted.

    Args:
        group: the id of a group; all if absent.
        member: a member id, client id or instance id; all if absent.
        since_ms: the first time, epoch ms.
        until_ms: the time after the last, epoch ms.
    """

    group: str | None = None
    member: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, event: ExplainedEvent) -> bool:
        """Tell whether an event is wanted."""
        if self.group is not None and event.group_id != self.group:
            return False
        if self.since_ms is not None and event.time_ms < self.since_ms:
            return False
        if self.until_ms is not None and event.time_ms >= self.until_ms:
            return False
        return self.member is None or self._names(event)

    def _names(self, event: ExplainedEvent) -> bool:
        ids = (event.member_id, event.client_id, event.group_instance_id, event.new_member_id, event.returned_as)
        return self.member in ids or self.member in event.blocked_by or self.member in event.caused_by


def explain_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    utc_offset_ms: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Iterator[ExplainedEvent]:
    """Explain whole logs.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for.
        utc_offset_ms: how far times without a zone are ahead of UTC, ms.
        progress: called with how many bytes were read.

    Returns:
        The events, in the order of time.

    Raises:
        HeartwheelError: if a log cannot be read.
    """
    return History(names).explain(in_order(_facts(names, scanned, stdin, Layout(utc_offset_ms), progress)))


def follow_logs(
    names: Sequence[str],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    utc_offset_ms: int = 0,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[list[ExplainedEvent]]:
    """Explain logs as they grow.

    A leave that turns out to be a poll timeout is given twice, with the same evidence; the second one holds.

    Args:
        names: of the logs; `-` is the standard input.
        scanned: where to count.
        stdin: what `-` stands for.
        utc_offset_ms: how far times without a zone are ahead of UTC, ms.
        go_on: asked before each look whether to go on.

    Returns:
        The events of each look, also if there are none.

    Raises:
        HeartwheelError: if a log cannot be read.
    """
    history = History(names, hold_ms=0)
    layout = Layout(utc_offset_ms)
    readers = [FactReader(name, number, layout, scanned) for number, name in enumerate(names)]
    for facts in follow(names, readers, scanned, stdin=stdin, go_on=go_on):
        yield [event for fact in facts for event in history.add(fact)]
    yield list(history.finish())


def _facts(
    names: Sequence[str], scanned: Scanned, stdin: BinaryIO, layout: Layout, progress: Callable[[int], None] | None
) -> Iterator[Fact]:
    for number, name in enumerate(names):
        stream = open_log(name, stdin)
        try:
            yield from scan(stream, FactReader(name, number, layout, scanned), scanned, progress)
        finally:
            if stream is not stdin:
                stream.close()
