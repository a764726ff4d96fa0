"""A stretch of time that is older than what a watcher's page has in memory is read from its history."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from heartwheel.readers.live.lane_store import LaneStore
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.causes.happening import Happening, HappeningKind
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.order import merged
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.history_times import happened_between
from heartwheel.sources.watch.older_time import older_time
from support.job import wait_for
from support.scripted_log import START_MS, lines_of, member
from support.watching import watching

FAILS = "Member {} in group {} has failed, removing it from the group"
HOUR_S = 3_600


def lanes_of(picture: Picture) -> LaneStore:
    """Return the marks of an older time."""
    assert picture.lanes is not None
    return picture.lanes.store


@pytest.fixture
def history(tmp_path: Path) -> Iterator[HistoryFile]:
    """Open an empty history."""
    with HistoryFile(tmp_path / "h.db", writes=True) as opened:
        yield opened


def test_the_facts_of_a_time_are_found_in_each_file(history: HistoryFile) -> None:
    """By a search in each file, whatever else was read between its facts: exactly those that a scan finds."""
    rng, times = random.Random(5), {1: 0, 2: 0, 3: 500}
    files = {file: history.add_file(f"log-{file}") for file in times}
    known: list[tuple[int, int]] = []
    for _ in range(400):
        file = rng.choice([1, 1, 1, 2, 3])
        times[file] += rng.choice([0, 0, 1, 7])
        known.append((times[file], files[file]))
        fact = Fact(order_ms=times[file], file=files[file], line=len(known), time_ms=times[file])
        history.save([([fact], True)], {}, Scanned().counts(), now_ms=0)
    for from_ms, to_ms in [(0, 10_000), (100, 101), (-5, 0), (600, 900), (499, 700), (9_000, 9_001), (50, 50)]:
        found = [fact for part in history.slices(from_ms, to_ms) for fact in history.facts_of(part)]
        wanted = sorted(each for each in known if from_ms <= each[0] < to_ms)
        assert sorted((fact.order_ms, fact.file) for fact in found) == wanted
        assert sum(part.size for part in history.slices(from_ms, to_ms)) == len(wanted)
    assert history.newest_ms(400) == max(times.values())
    assert history.newest_ms(0) is None


def test_an_older_time_than_the_page_keeps_is_read_when_it_is_asked_for(tmp_path: Path) -> None:
    """The page keeps the newest thousand lines; an hour before these is in the history, with cause and advice."""
    log = tmp_path / "server.log"
    old = [(number, FAILS.format(member("old", number), "old")) for number in range(60)]
    new = [(9 * HOUR_S + number, FAILS.format(member("new", number), "new")) for number in range(1_100)]
    log.write_text(lines_of(*old, *new))
    with watching(tmp_path, log):
        pass  # what a log has at first is read into the history alone, and explained at the next start
    with watching(
        tmp_path, log, watch={"page_events_max": 1_000, "history_file": str(tmp_path / "history.db")}
    ) as watcher:
        url = f"{watcher.url}api/lanes"
        newest = httpx.get(url).json()
        assert [group["group_id"] for group in newest["groups"]] == ["new"]
        assert newest["known_from_ms"] > START_MS + 60_000
        period = {"since_ms": START_MS, "until_ms": START_MS + 60_000}
        older = httpx.get(url, params=period).json()
        assert (older["from_history"], older["removals"], older["read_from_ms"]) == (True, 60, None)
        (group,) = older["groups"]
        assert group["removals"][0]["member_id"] == member("old", 59)
        assert "session.timeout.ms" in group["removals"][0]["advice"]
        assert httpx.get(url, params=period | {"text": "new"}).json()["matched"] == 0


def test_the_list_of_removals_goes_back_through_the_whole_history(tmp_path: Path) -> None:
    """The page has a hundred in memory; each answer says up to when the history has older ones, until all were seen."""
    log = tmp_path / "server.log"
    log.write_text(lines_of(*((number * 60, FAILS.format(member("m", number), "g")) for number in range(300))))
    with watching(tmp_path, log):
        pass
    with watching(tmp_path, log, dashboard={"port": 0, "expirations_max": 100}) as watcher:
        url = f"{watcher.url}api/expirations"
        newest = httpx.get(url, params={"limit": 1_000}).json()
        assert (newest["matched"], newest["older_until_ms"]) == (100, START_MS + 199 * 60_000 + 1)
        found, until_ms = list(newest["rows"]), newest["older_until_ms"]
        while until_ms is not None:
            older = httpx.get(url, params={"limit": 1_000, "until_ms": until_ms}).json()
            found, until_ms = found + older["rows"], older["older_until_ms"]
        names = list(dict.fromkeys(row["member_id"] for row in found))
        assert names == [member("m", number) for number in reversed(range(300))]
        (one,) = httpx.get(url, params={"since_ms": START_MS, "until_ms": START_MS + 1}).json()["rows"]
        assert "session.timeout.ms" in one["advice"]
        rows = httpx.get(f"{watcher.url}api/expirations.json", params={"until_ms": START_MS + 60_001}).json()
        assert [row["member_id"] for row in rows] == [member("m", 1), member("m", 0)]


def test_logs_are_followed_while_an_older_time_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that has begun and does not end delays no line: it is in the history, on the page and in the metrics."""
    log = tmp_path / "server.log"
    old = [(number, FAILS.format(member("old", number), "old")) for number in range(60)]
    new = [(9 * HOUR_S + number, FAILS.format(member("new", number), "new")) for number in range(1_100)]
    log.write_text(lines_of(*old, *new))
    with watching(tmp_path, log):
        pass
    reads, goes_on = threading.Event(), threading.Event()

    def held(parts: Iterable[Iterable[Fact]]) -> Iterator[Fact]:
        for fact in merged(parts):
            yield fact
            reads.set()
            assert goes_on.wait(60)

    monkeypatch.setattr("heartwheel.sources.watch.older_time.merged", held)
    settings = {"page_events_max": 1_000, "history_file": str(tmp_path / "history.db")}
    with watching(tmp_path, log, watch=settings) as watcher, ThreadPoolExecutor(1) as pool:
        period = {"since_ms": START_MS, "until_ms": START_MS + 60_000}
        answer = pool.submit(httpx.get, f"{watcher.url}api/lanes", params=period, timeout=60)
        try:
            assert reads.wait(60)
            with log.open("a") as out:
                out.write(lines_of((10 * HOUR_S, FAILS.format(member("late", 1), "late")), (10 * HOUR_S + 1, "other")))
            wait_for(lambda: 'group="late"' in httpx.get(f"{watcher.url}metrics").text, "a line in the metrics")
            shown = httpx.get(f"{watcher.url}api/expirations", params={"group": "late"}).json()
            assert (shown["matched"], answer.done()) == (1, False)
        finally:
            goes_on.set()
        assert answer.result().json()["removals"] == 60


def test_of_a_time_with_too_many_lines_the_newest_are_read(tmp_path: Path) -> None:
    """And the answer says from when on, so that nobody takes it for all."""
    log = tmp_path / "server.log"
    log.write_text(lines_of(*((number * 60, FAILS.format(member("m", number), "g")) for number in range(1_000))))
    with watching(tmp_path, log):
        pass
    end_ms, rule = START_MS + 60_000_000, StormRule()
    some = lanes_of(older_time(tmp_path / "history.db", START_MS, end_ms, 300, storm=rule))
    assert some.known_from_ms is not None
    assert START_MS < some.known_from_ms < end_ms
    assert 0 < sum(len(group.marks) for group in some.groups.values()) <= 300
    every = lanes_of(older_time(tmp_path / "history.db", START_MS, end_ms, 5_000, storm=rule))
    assert every.known_from_ms is None
    assert sum(len(group.marks) for group in every.groups.values()) == 1_000


def test_of_what_happened_to_pods_only_that_of_the_asked_time_is_read(history: HistoryFile) -> None:
    """And where pods run, whenever that was noted: a member's host leads to its pod."""
    rng, kinds = random.Random(7), [HappeningKind.OOM_KILLED, HappeningKind.EVICTED, HappeningKind.POD]
    known = [
        Happening(kind=rng.choice(kinds), time_ms=rng.randrange(1_000), pod=f"p-{n}", file="pods.json", line=n)
        for n in range(300)
    ]
    history.keep_happenings(known, now_ms=0)
    for from_ms, to_ms in [(0, 1_000), (400, 500), (500, 400)]:
        found = history.happenings(partial(happened_between, from_ms, to_ms))
        assert found == [each for each in known if each.kind is HappeningKind.POD or from_ms <= each.time_ms < to_ms]


def test_a_removal_of_an_older_time_has_its_cause(tmp_path: Path) -> None:
    """What was killed before it is read with it; what was killed at another time is not its cause."""
    log, path = tmp_path / "server.log", tmp_path / "history.db"
    log.write_text(lines_of((9 * HOUR_S, FAILS.format("orders-1", "g"))))
    with watching(tmp_path, log):
        pass
    at_ms = START_MS + 9 * HOUR_S * 1_000
    with HistoryFile(path, writes=True) as opened:
        for number, time_ms in enumerate([START_MS, at_ms - 10_000]):
            killed = Happening(
                kind=HappeningKind.OOM_KILLED, time_ms=time_ms, pod="orders-1", text="container", file="p", line=number
            )
            opened.keep_happenings([killed], now_ms=0)
    older = older_time(path, at_ms - 60_000, at_ms + 60_000, 1_000, storm=StormRule())
    (mark,) = lanes_of(older).groups["g"].marks
    assert any("p:1" in sentence for sentence in mark.why), mark.why
