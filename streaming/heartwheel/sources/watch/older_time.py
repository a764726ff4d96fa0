"""A stretch of time that is older than what a watcher's page has in memory, from its history."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from heartwheel.readers.live.lane_page import OlderTime
from heartwheel.readers.live.lane_store import LaneStore
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.window import ExpirationWindow
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.history import HOLD_MS, History
from heartwheel.sources.explain.order import merged
from heartwheel.sources.explain.shown import rows_of_log
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.history_times import FactSlice, happened_between
from heartwheel.wire.verdict_rows import ExpirationRow

AROUND_MS: Final = 900_000
"""How much before a time is read to know who was a member then, and after it to know who came back, ms."""


def older_time(path: Path, from_ms: int, to_ms: int, facts_max: int, *, storm: StormRule) -> OlderTime:
    """Read what happened in a time, in memory that does not depend on its length.

    The history is opened for this read, and in WAL mode a reader and the writer do not wait for each other: whatever is
    read, logs are followed.

    Args:
        path: of the history, which may be written meanwhile.
        from_ms: epoch ms.
        to_ms: the time after the last, epoch ms.
        facts_max: most facts that are read, the newest; `known_from_ms` says from when on those are.
        storm: the number of rebalances at which a group is in a storm.

    Raises:
        HeartwheelError: the history cannot be read.
    """
    store, window = LaneStore(), ExpirationWindow(facts_max, to_ms)
    with HistoryFile(path, writes=False) as history, history.snapshot():
        begin_ms, slices = _slices(history, from_ms, to_ms, facts_max)
        near = partial(happened_between, begin_ms - HOLD_MS, to_ms + AROUND_MS)
        facts, causes = merged(map(history.facts_of, slices)), Causes(history.happenings(near))
        for event in History(history.files(), storm=storm, joined=store.joined, causes=causes).explain(facts):
            store.add(event)
            for each in rows_of_log((event,)):
                if isinstance(each.row, ExpirationRow):
                    window.add(each.row, append_ms=each.append_ms, partition=each.partition, offset=each.offset)
    if begin_ms > from_ms - AROUND_MS:
        store.known_from_ms = max(begin_ms, store.known_from_ms or 0)
    return OlderTime(store, window.rows, store.known_from_ms)


def _slices(history: HistoryFile, from_ms: int, to_ms: int, facts_max: int) -> tuple[int, list[FactSlice]]:
    """Return where the facts are, and the time of the first; half of the time at once is left out if they are many."""
    begin_ms, end_ms = from_ms - AROUND_MS, to_ms + AROUND_MS
    while True:
        slices = history.slices(begin_ms, end_ms)
        if sum(each.size for each in slices) <= facts_max or begin_ms >= to_ms - 1:
            return begin_ms, slices
        begin_ms = (begin_ms + to_ms) // 2
