"""Advice: the number of cases is that of the log, and nothing is advised that the log does not show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs
from support.broker_logs import REAL
from support.scripted_log import lines_of, member, preparing, stable
from support.stepping import Stepping

LOG = str(REAL / "server.log")
FAILS = "Member {} in group g has failed, removing it from the group"


def advised(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    """Return the advice by group and setting."""
    capsys.readouterr()
    assert run(["advise", *words, "--json"]) == 0
    groups = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {each["group_id"]: {one["setting"]: one for one in each["settings"]} for each in groups}


def test_advice_on_a_real_log_is_what_was_done_to_its_members(capsys: pytest.CaptureFixture[str]) -> None:
    """A member hung, another was stopped, and eight were restarted; who did not come back is no case for a timeout."""
    groups = advised(capsys, LOG)
    poll = groups["billing"]["max.poll.interval.ms"]
    assert (poll["prevented"], poll["cases"], poll["value"]) == (1, 1, "14.1 s")
    assert "noticed 9.1 s later" in poll["words"]
    session = groups["video"]["session.timeout.ms"]
    assert (session["prevented"], session["cases"], session["value"]) == (1, 1, "")
    assert groups["deploys"]["group.instance.id"]["prevented"] == 8
    assert [groups["orders"]["session.timeout.ms"][each] for each in ("prevented", "cases", "value")] == [0, 1, ""]
    assert [groups["search"]["max.poll.interval.ms"][each] for each in ("prevented", "cases", "value")] == [0, 1, ""]


def test_stopped_work_is_the_length_of_a_rebalance_times_its_members(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two seconds of three members; a rebalance that began before the log has no length, and counts for none."""
    log, gone = tmp_path / "server.log", member("g-1")
    lines = [
        (0, stable(1, members=4)),
        (5, FAILS.format(gone)),
        (5, preparing(1, f"removing member {gone} on heartbeat expiration")),
        (7, stable(2, members=3)),
        (9, preparing(2, f"Adding new member {member('g-1', 2)} with group instance id None")),
        (10, stable(3, members=4)),
    ]
    log.write_text(lines_of(*lines))
    found = advised(capsys, str(log))["g"]
    assert found["session.timeout.ms"]["stopped_ms"] == 3 * 2_000
    assert (found["group.protocol"]["stopped_ms"], found["group.protocol"]["prevented"]) == (3 * 2_000 + 4 * 1_000, 2)
    assert found["group.protocol"]["cases"] == 3


def test_a_group_whose_removed_members_did_not_come_back_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With how many there were, and without a value; so it differs from a group without removals, which has nothing."""
    log = tmp_path / "server.log"
    joins = [(0.0, stable(1, group, members=3)) for group in ("one", "many", "calm")]
    outs = [("many", 1), ("many", 2), ("many", 3), ("one", 4)]
    fails = [(5.0 + at, FAILS.format(member("a", at)).replace("group g ", f"group {group} ")) for group, at in outs]
    log.write_text(lines_of(*joins, *fails))
    found = advised(capsys, str(log))
    assert list(found) == ["many", "one"]
    words = {group: each["session.timeout.ms"]["words"] for group, each in found.items()}
    assert words["many"] == (
        "The log shows none of the 3 members that were removed by session.timeout.ms back within an hour, so it does "
        "not show which value would have been enough."
    )
    assert words["one"].startswith("The log does not show the member that was removed by session.timeout.ms back ")
    assert [each["session.timeout.ms"]["prevented"] for each in found.values()] == [0, 0]
    assert run(["advise", str(log)]) == 0
    assert words["many"] in capsys.readouterr().out


def test_a_history_gives_the_advice_of_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all groups, and of one that is asked for."""
    clock, file = Stepping(), tmp_path / "history.db"
    with HistoryFile(file, writes=True) as history, WatchedLogs([LOG], history, clock=clock) as logs:
        while logs.behind():
            logs.read()
        clock.now_s += 1
        logs.read()
    for words in ([], ["--group", "bill*"]):
        assert advised(capsys, "--history", str(file), *words) == advised(capsys, LOG, *words)


def test_what_cannot_be_advised_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No log, two sources, a log without coordinators, a group that is not there, and a log in which all is well."""
    assert run(["advise"]) == 2
    assert run(["advise", LOG, "--history", "h.db"]) == 2
    (tmp_path / "other.log").write_text("something else\n")
    assert run(["advise", str(tmp_path / "other.log")]) == 1
    assert run(["advise", LOG, "--group", "nosuch"]) == 1
    (tmp_path / "calm.log").write_text(lines_of((0, stable(1))))
    capsys.readouterr()
    assert run(["advise", str(tmp_path / "calm.log")]) == 0
    assert "nothing that another setting" in capsys.readouterr().out
