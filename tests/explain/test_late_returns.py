"""Members that are back hours after their removal: what is said of their groups counts them, however the log is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.readers.live.storms import StormRule
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.explain.verdicts import judged
from heartwheel.sources.watch.older_time import older_time
from heartwheel.wire.explained import ExplainedEvent, Happened
from support.broker_logs import OUT, explained
from support.job import wait_for
from support.scripted_log import START_MS, lines_of, member, preparing
from support.watching import watching

LATE_S: Final = 7_200
K: Final = "Yk3yQq0TSVuRW1yU3oCQeg"
NEW_K: Final = "Zk3yQq0TSVuRW1yU3oCQeg"
SAID: Final = (
    "Of 4 that were out 3 were back, the last 2 h 10 min later; if that was the same process, a session.timeout.ms"
)


def failed(client: str, number: int = 1) -> str:
    """Write the line of a session timeout."""
    return f"Member {member(client, number)} in group g has failed, removing it from the group"


def added(client: str, number: int, instance: str = "") -> str:
    """Write the line of a member that joins."""
    who = f"Some({instance})" if instance else "None"
    return preparing(number, f"Adding new member {member(client, number)} with group instance id {who}")


LOG: Final = lines_of(
    (0, failed("same")),
    (1, failed("i-1")),
    (2, failed("quick")),
    (3, failed("gone")),
    (12, added("quick", 2)),
    (LATE_S, added("same", 1)),
    (LATE_S + 601, added("i-1", 3, "i-1")),
    (LATE_S + 4_000, preparing(4, f"Leader {member('same')} re-joining group")),
)
"""Members back under their id, their instance id and their client id, and one that is not."""

RETURNS_S: Final = {"same": LATE_S, "i-1": LATE_S + 601, "quick": 12, "gone": None}


def removals(log: str) -> list[ExplainedEvent]:
    """Return the events in which a membership ended."""
    return [event for event in explained(log) if event.kind in OUT]


def verdict(log: str) -> str:
    """Return what is said of the group of a log."""
    sums = LogSummary()
    for event in explained(log):
        sums.add(event)
    (group,) = judged(sums)
    return " ".join(group.verdict)


@pytest.mark.parametrize("more", [(), ("--group", "g"), ("--member", "*-9c0f6a3e-*")])
def test_a_whole_log_counts_late_returns(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of the members that are asked for; it said that none but the quick one was back."""
    log = tmp_path / "server.log"
    log.write_text(LOG)
    assert run(["explain", str(log), *more]) == 0
    assert SAID in capsys.readouterr().out


def test_a_removal_that_is_not_asked_for_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The id under which a member is back does not make its removal one of those that were."""
    log = tmp_path / "server.log"
    log.write_text(LOG + lines_of((20_000, failed("i-1", 3))))
    assert run(["explain", str(log), "--member", member("i-1", 3)]) == 0
    assert "The log does not show i-1 back within an hour" in capsys.readouterr().out


def test_a_log_that_is_followed_counts_returns() -> None:
    """Every return is late there, because a removal is shown at once."""
    command = [sys.executable, "-m", "heartwheel", "explain", "--follow", "-"]
    done = subprocess.run(command, input=LOG, capture_output=True, text=True, check=True)
    assert SAID in done.stdout


def test_a_history_counts_late_returns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So does an older time that a page reads from it, with the rows of page Expired."""
    log, history = tmp_path / "server.log", tmp_path / "history.db"
    log.write_text(LOG)
    with watching(tmp_path, log, watch={"history_file": str(history)}):
        pass
    assert run(["explain", "--history", str(history)]) == 0
    assert SAID in capsys.readouterr().out
    for group in ("g", ""):
        older = older_time(history, START_MS, START_MS + 20_000_000, 10_000, group, storm=StormRule())
        found = {row.client_id or row.member_id: row.returned_ms for row in older.window.after(0)}
        assert returned_s(found) == RETURNS_S
        if group:
            assert SAID in " ".join(older.groups.entries[group].verdict)


def returned_s(found: dict[str, int | None]) -> dict[str, int | None]:
    """Return the seconds after the log's begin."""
    return {name: None if at is None else (at - START_MS) // 1_000 for name, at in found.items()}


@pytest.mark.parametrize("more", [(), ("--group", "g"), ("--follow",)])
def test_a_page_shows_late_returns(more: tuple[str, ...], tmp_path: Path) -> None:
    """In what it says of the group, and in the rows of page Expired."""
    log = tmp_path / "server.log"
    log.write_text(LOG)
    command = [sys.executable, "-u", "-m", "heartwheel", "explain", "--page", str(log), "--port", "0", *more]
    with subprocess.Popen(command, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            wait_for(lambda: SAID in _said(url), "the verdict of the group")
            rows: list[dict[str, Any]] = httpx.get(f"{url}api/expirations").json()["rows"]
            assert returned_s({row["client_id"] or row["member_id"]: row["returned_ms"] for row in rows}) == RETURNS_S
        finally:
            process.kill()


def _said(url: str) -> str:
    return " ".join(text for row in httpx.get(f"{url}api/groups").json()["rows"] for text in row["verdict"])


def test_a_client_id_is_not_for_ever_that_of_one_member() -> None:
    """Two hours later it may be another process, so the log shows no return, and does not show that there was none."""
    log = lines_of((0, failed("app-1")), (LATE_S, added("app-1", 2)))
    assert removals(log)[0].returned_ms is None
    assert "The log does not show app-1 back within an hour, so it does not show which session.timeout.ms" in verdict(
        log
    )
    static = lines_of((0, failed("i-1")), (LATE_S, added("i-1", 2, "i-1")))
    assert removals(static)[0].returned_ms == START_MS + LATE_S * 1_000


def test_a_static_member_that_left_for_a_while_and_was_fenced_is_one_member() -> None:
    """Its leave and its removal are two lines, and it is back from the second."""
    left = f"[GroupId g] Static member {K} with instance id i-1 temporarily left the consumer group."
    fenced = f"[GroupId g] Member {K} fenced from the group because the member session expired."
    back = (
        f"[GroupId g] Static member {NEW_K} with instance id i-1 joins the consumer group using the consumer protocol."
    )
    for at in (60, LATE_S):
        found = removals(lines_of((0, left), (45, fenced), (at, back), new=True))
        assert [event.returned_ms for event in found] == [None, START_MS + at * 1_000]


def test_a_member_returns_once() -> None:
    """Who is back under its own id is not back again when another one of its client joins."""
    log = lines_of((0, failed("app-1")), (60, added("app-1", 1)), (120, added("app-1", 2)))
    assert [(each.returned_ms, each.returned_as) for each in removals(log)] == [(START_MS + 60_000, member("app-1"))]


def test_a_static_member_that_was_replaced_before_is_one_member() -> None:
    """What it returned from under its former id is over when it is removed."""
    left = f"[GroupId g] Static member {K} with instance id i-1 temporarily left the consumer group."
    replaced = (
        "[GroupId g] Static member with instance id i-1 re-joins the consumer group using the consumer protocol. "
        f"Created a new member {NEW_K} to replace the existing member {K}."
    )
    fenced = f"[GroupId g] Member {NEW_K} fenced from the group because the member session expired."
    back = f"[GroupId g] Static member {K} with instance id i-1 joins the consumer group using the consumer protocol."
    found = removals(lines_of((0, left), (9, replaced), (600, fenced), (LATE_S, back), new=True))
    assert [event.returned_ms for event in found if event.kind is Happened.EXPIRED] == [START_MS + LATE_S * 1_000]


def test_an_older_time_counts_leaves_as_the_whole_log_does(tmp_path: Path) -> None:
    """A leave that turned out to be a poll timeout takes none of the others back."""
    log, history = tmp_path / "server.log", tmp_path / "history.db"
    others = [(number, f"[GroupId g] Member m{number}{K[2:]} left the consumer group.") for number in range(10)]
    returned = (14, f"[GroupId g] Member {K} joins the consumer group using the consumer protocol.")
    text = lines_of(*others, (10, f"[GroupId g] Member {K} left the consumer group."), returned, new=True)
    log.write_text(text)
    with watching(tmp_path, log, watch={"history_file": str(history)}):
        pass
    older = older_time(history, START_MS, START_MS + 20_000, 10_000, "g", storm=StormRule())
    assert "10 leaves" in verdict(text)
    assert "10 leaves" in " ".join(older.groups.entries["g"].verdict)
