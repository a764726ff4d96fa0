"""New facts of a history become events some at a time, and count as explained when the last of them are."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from heartwheel.readers.live.lane_page import LaneFilter, LaneSource, lane_page
from heartwheel.readers.live.lane_store import LaneStore
from heartwheel.readers.live.storms import StormRule
from heartwheel.settings import Settings
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.explain.verdicts import judged
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.live_events import LiveEvents
from heartwheel.sources.watch.watched_logs import WatchedLogs
from support.broker_logs import explained
from support.hostile_lines import HEAD, LOGGER
from support.scripted_log import START_MS, lines_of, member, preparing, stable
from support.stepping import Stepping

REMOVALS = 2_500


def test_many_lines_at_once_are_explained_in_parts(tmp_path: Path) -> None:
    """Events are large: none of them waits for all. One who stops between two parts explains all of them again."""
    log, clock = tmp_path / "server.log", Stepping()
    log.touch()
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as watched,
    ):
        live = LiveEvents(history, watched.files, logs=1, storm=StormRule(), after=0, clock=clock)
        lines = (f"{HEAD}Member m-{each} in group g has failed, removing it from the group" for each in range(REMOVALS))
        log.write_text("".join(f"{line}{LOGGER}\n" for line in lines))
        for _ in range(5):
            read = watched.read()
            live.add(read.facts, read.newest)
            clock.now_s += 1
        assert not watched.behind()
        sizes, explained = [], []
        for part in live.ready():
            sizes.append(len(part))
            explained.append(live.explained)
        assert (sum(sizes), max(sizes)) == (REMOVALS, 1_000)
        assert explained == [0, 0, history.newest]
        assert [len(part) for part in live.ready()] == [0]


def test_a_storm_grows_after_it_was_shown(tmp_path: Path) -> None:
    """It is shown with its fifth rebalance, and counts those that follow."""
    log, clock, lanes = tmp_path / "server.log", Stepping(), LaneStore()
    log.touch()
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as watched,
    ):
        live = LiveEvents(history, watched.files, logs=1, storm=StormRule(), after=0, clock=clock)
        counts = []
        for first in (0, 5):
            with log.open("a") as out:
                for number in range(first, first + 5):
                    begun = preparing(number, "removing member m-1 on LeaveGroup")
                    out.write(lines_of((number * 10, begun), (number * 10 + 1, stable(number + 1))))
            for _ in range(5):
                read = watched.read()
                live.add(read.facts, read.newest)
                clock.now_s += 1
            for event in (each for part in live.ready() for each in part):
                lanes.add(event)
            page = lane_page(LaneSource(lanes, follows=True), LaneFilter(), now_ms=START_MS + 3_600_000)
            counts.append([storm.count for group in page.groups for storm in group.storms])
        assert counts == [[5], [10]]


def test_a_verdict_is_that_of_the_whole_log_line_by_line(tmp_path: Path) -> None:
    """Who is back counts as back, and a poll timeout that the return shows is no leave, as if all was read at once."""
    log, clock = tmp_path / "server.log", Stepping()
    log.touch()
    page = LogPage(Settings(), ["server.log"], follows=True)
    classic, lines = [member("app-1", number) for number in range(5)], list[str]()
    for number, (gone, new) in enumerate(pairwise(classic)):
        at = 20 * number
        out = f"Member {gone} in group classic has failed, removing it from the group"
        back = preparing(2 * number + 1, f"Adding new member {new} with group instance id None", "classic")
        lines.append(lines_of((at, out), (at, preparing(2 * number, f"removing member {gone} on x", "classic"))))
        lines.append(lines_of((at + 1, stable(2 * number + 1, "classic")), (at + 2, back)))
        lines.append(lines_of((at + 3, stable(2 * number + 2, "classic"))))
        of_epochs = "[GroupId epochs] Member k {} the consumer group"
        lines.append(lines_of((at + 4, of_epochs.format("left") + "."), new=True))
        lines.append(lines_of((at + 9, of_epochs.format("joins") + " using the consumer protocol."), new=True))
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as watched,
    ):
        live = LiveEvents(history, watched.files, logs=1, storm=StormRule(), after=0, clock=clock, joined=page.joined)
        for part in lines:
            with log.open("a") as out_file:
                out_file.write(part)
            for _ in range(3):
                read = watched.read()
                live.add(read.facts, read.newest)
                clock.now_s += 1
                for events in live.ready():
                    page.take(events, watched.scanned)
        page.take([], watched.scanned)
    whole = LogSummary(follows=True)
    for event in explained("".join(lines)):
        whole.add(event)
    shown = {name: entry.verdict for name, entry in page.picture.groups.entries.items()}
    assert shown == {group.group_id: group.verdict for group in judged(whole)}
    assert "Of 4 that were out 4 were back" in " ".join(shown["classic"])


def test_what_a_log_had_when_it_was_named_is_no_news(tmp_path: Path) -> None:
    """So a first start explains no more of a long log than its page shows; a later one begins with what was missed."""
    log, clock = tmp_path / "server.log", Stepping()
    line = f"{HEAD}Member m-{{}} in group g has failed, removing it from the group{LOGGER}\n"
    log.write_text("".join(map(line.format, range(3))))
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as watched,
    ):
        while not watched.are_read:
            watched.read()
            clock.now_s += 1
        assert (history.newest, history.first_news(0)) == (3, None)
        with log.open("a") as out:
            out.write("".join(map(line.format, range(3, 5))))
        for _ in range(2):
            watched.read()
            clock.now_s += 1
        assert [history.first_news(since) for since in (0, 3, 4, 5)] == [4, 4, 5, None]
