"""New facts of a history become events some at a time, and count as explained when the last of them are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from heartwheel.readers.live.lane_page import LaneFilter, LaneSource, lane_page
from heartwheel.readers.live.lane_store import LaneStore
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.timeline import timeline_of
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


def follow(folder: Path, page: LogPage, parts: Sequence[str]) -> None:
    """Show a log on a page as it grows by some parts."""
    log, clock = folder / "server.log", Stepping()
    log.touch()
    with (
        HistoryFile(folder / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as watched,
    ):
        live = LiveEvents(history, watched.files, logs=1, storm=StormRule(), after=0, clock=clock, joined=page.joined)
        for part in parts:
            with log.open("a") as out_file:
                out_file.write(part)
            for _ in range(3):
                read = watched.read()
                live.add(read.facts, read.newest)
                clock.now_s += 1
                for events in live.ready():
                    page.take(events, watched.scanned)
        page.take([], watched.scanned)


def test_a_verdict_is_that_of_the_whole_log_line_by_line(tmp_path: Path) -> None:
    """Who is back counts as back, and a poll timeout that the return shows is no leave, as if all was read at once."""
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
    follow(tmp_path, page, lines)
    whole = LogSummary(follows=True)
    for event in explained("".join(lines)):
        whole.add(event)
    shown = {name: entry.verdict for name, entry in page.picture.groups.entries.items()}
    assert shown == {group.group_id: group.verdict for group in judged(whole)}
    assert "Of 4 that were out 4 were back" in " ".join(shown["classic"])


@pytest.mark.parametrize("at_once", [False, True])
def test_a_leave_that_was_a_poll_timeout_is_one_line(tmp_path: Path, at_once: bool) -> None:  # noqa: FBT001 - pytest's
    """Its group's events say that the member left until it is back under its id, and then what that was."""
    page = LogPage(Settings(), ["server.log"], follows=True)
    lines = "k left the {}.", "n left the {}.", "k joins the {} using the consumer protocol."
    texts = ["[GroupId g] Member " + line.format("consumer group") for line in lines]
    parts = [lines_of((at, text), new=True) for at, text in enumerate(texts)]
    follow(tmp_path, page, ["".join(parts)] if at_once else parts)
    rows = timeline_of(page.picture.groups.entries["g"])
    kinds = [(row["kind"], row["text"].partition(" ")[0]) for row in rows if row["kind"] in {"left", "expired"}]
    assert kinds == [("left", "n"), ("expired", "k")]


def test_the_line_of_a_storm_grows_with_it(tmp_path: Path) -> None:
    """A group's events say how many rebalances its storm has by now, and not with how many it was noticed."""
    page = LogPage(Settings(), ["server.log"], follows=True)
    begun = (preparing(number, "removing member m-1 on LeaveGroup") for number in range(9))
    follow(tmp_path, page, [lines_of((n, text), (n + 1, stable(n + 1))) for n, text in enumerate(begun)])
    (line,) = [row["text"] for row in timeline_of(page.picture.groups.entries["g"]) if row["kind"] == "storm"]
    assert line.startswith("Storm: 9 rebalances in 8.0 s")


@pytest.mark.parametrize("at_once", [False, True])
def test_a_return_has_one_time(tmp_path: Path, at_once: bool) -> None:  # noqa: FBT001 - pytest's
    """It is that of the line in which the member joins; the rebalance that names it begins a moment later."""
    page = LogPage(Settings(), ["server.log"], follows=True)
    gone, new = member("app-1", 1), member("app-1", 2)
    joins = "Dynamic member with unknown member id joins group g in Empty state. Created"
    parts = [
        lines_of((0, f"Member {gone} in group g has failed, removing it from the group")),
        lines_of((0, preparing(1, f"removing member {gone} on heartbeat expiration")), (1, stable(2))),
        lines_of((5, f"{joins} a new member id {new} and requesting the member to rejoin with this id.")),
        lines_of((5.25, preparing(2, f"Adding new member {new} with group instance id None")), (6, stable(3))),
    ]
    follow(tmp_path, page, ["".join(parts)] if at_once else parts)
    lanes = lane_page(LaneSource(page.lanes, follows=True), LaneFilter(), now_ms=START_MS + 3_600_000)
    (removal,) = lanes.groups[0].removals
    (row,) = page.picture.window.rows
    assert (row.returned_ms, removal.returned_ms) == (START_MS + 5_000, START_MS + 5_000)


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
