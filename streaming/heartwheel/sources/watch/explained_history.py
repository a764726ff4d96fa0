"""Explain a history: it gives the events of the logs that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.wire.explained import ExplainedEvent


def explain_history(
    path: Path,
    scanned: Scanned,
    joined: Callable[[MemberJoined], None] | None = None,
    causes: Causes | None = None,
) -> Iterator[ExplainedEvent]:
    """Explain a history, also while it is being written.

    Args:
        path: of the file.
        scanned: where to count.
        joined: called with each member that joins.
        causes: what happened to pods and machines, besides what the history has of that.

    Returns:
        The events, in the order of time.

    Raises:
        HeartwheelError: it cannot be read.
    """
    with HistoryFile(path, writes=False) as history, history.snapshot():
        scanned.restore(history.scanned())
        if history.is_trimmed:
            scanned.first_ms = None  # that of the facts that are left
        causes = causes or Causes()
        causes.add(history.happenings())
        files = history.files()
        rank = {file: number for number, file in enumerate(files)}
        explained = History(list(files.values()), joined=joined, causes=causes)
        yield from explained.explain(in_order(_facts(history, rank, scanned)))


def _facts(history: HistoryFile, rank: dict[int, int], scanned: Scanned) -> Iterator[Fact]:
    for _, _, fact in history.facts():
        fact.file = rank[fact.file]
        scanned.note_group(fact.group_id)
        scanned.note_time(fact.time_ms)
        yield fact
