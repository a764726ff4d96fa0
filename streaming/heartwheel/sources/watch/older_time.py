"""A picture of a stretch of time that is older than what a watcher's page has in memory, from its history."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from heartwheel.readers.live.lane_page import LaneSource
from heartwheel.readers.live.lane_store import LaneStore, MemberJoined
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.history import HOLD_MS, History
from heartwheel.sources.explain.order import merged
from heartwheel.sources.explain.picture import logged_line, show_summary
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.explain.shown import id_of_removal, rows_of_log
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.history_times import FactSlice, happened_between
from heartwheel.wire.explained import REASON_OF, ExplainedEvent
from heartwheel.wire.verdict_rows import ExpirationRow

AROUND_MS: Final = 900_000
"""How much before a time is read to know who was a member then, and after it to know who came back, ms."""

_EVER_MS: Final = 100 * 366 * 86_400_000


def older_time(
    path: Path, from_ms: int, to_ms: int, facts_max: int, group_id: str = "", *, storm: StormRule
) -> Picture:
    """Read what happened in a time, in memory that does not depend on its length.

    The history is opened for this read, and in WAL mode a reader and the writer do not wait for each other: whatever is
    read, logs are followed.

    Args:
        path: of the history, which may be written meanwhile.
        from_ms: epoch ms.
        to_ms: the time after the last, epoch ms.
        facts_max: most facts that are read, the newest; `known_from_ms` says from when on those are.
        group_id: the only group that is read, if it is named; its rebalances and state are then in the picture, too,
            and members whose lines name no group, as some of Kafka 2.4, are left out.
        storm: the number of rebalances at which a group is in a storm.

    Raises:
        HeartwheelError: the history cannot be read.
    """
    picture = Picture(expirations_max=facts_max, triggers_max=2 * facts_max, window_ms=_EVER_MS)
    store, summary = LaneStore(2 * facts_max), LogSummary()

    def joined(member: MemberJoined) -> None:
        store.joined(member)
        if member.removal is not None and group_id in {"", member.group_id}:
            if group_id:
                summary.returned(member.removal)
            picture.returned(id_of_removal(member.removal), member.time_ms)

    with HistoryFile(path, writes=False) as history, history.snapshot():
        begin_ms, slices = _slices(history, from_ms, to_ms, facts_max, group_id)
        near = partial(happened_between, begin_ms - HOLD_MS, to_ms + AROUND_MS)
        facts, causes = merged(history.facts_of(each, group_id) for each in slices), Causes(history.happenings(near))
        for event in History(history.files(), storm=storm, joined=joined, causes=causes).explain(facts):
            if not group_id:
                store.add(event)
                _add_removal(picture, event)
            elif event.group_id == group_id:
                store.add(event)
                summary.add(event)
                _add(picture, event)
    if begin_ms > from_ms - AROUND_MS:
        store.known_from_ms = summary.known_from_ms = max(begin_ms, store.known_from_ms or 0)
        picture.known_from(store.known_from_ms)
    summary.follows = True  # in its words alone: events that have waited are final, as those of a whole log are
    show_summary(picture, summary, Scanned())
    picture.lanes = LaneSource(store, older=partial(older_time, path, storm=storm))
    return picture


def _add_removal(picture: Picture, event: ExplainedEvent) -> None:
    """Add a removal alone: of all groups together, their removals and timelines are shown and no more."""
    for each in rows_of_log((event,) if event.kind in REASON_OF else ()):
        assert isinstance(each.row, ExpirationRow)  # noqa: S101 - by the kind of event
        picture.window.add(each.row, append_ms=each.append_ms, partition=each.partition, offset=each.offset)


def _add(picture: Picture, event: ExplainedEvent) -> None:
    picture.apply(list(rows_of_log((event,))), now_ms=event.time_ms)
    line = logged_line(event)
    if line is not None:
        picture.add_logged(event.group_id, line)


def _slices(
    history: HistoryFile, from_ms: int, to_ms: int, facts_max: int, group_id: str
) -> tuple[int, list[FactSlice]]:
    """Return where the facts are, and the time of the first; half of the time at once is left out if they are many."""
    begin_ms, end_ms = from_ms - AROUND_MS, to_ms + AROUND_MS
    while True:
        slices = history.slices(begin_ms, end_ms, group_id)
        if sum(each.size for each in slices) <= facts_max or begin_ms >= to_ms - 1:
            return begin_ms, slices
        begin_ms = (max(begin_ms, history.oldest_ms()) + to_ms) // 2
