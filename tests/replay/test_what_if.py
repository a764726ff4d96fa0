"""What if: every silence of a log, held against other session timeouts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.replay.log import LogReplay
from heartwheel.engine.replay.meta import read_meta
from heartwheel.engine.replay.signs import SignsOfLife
from heartwheel.engine.replay.what_if import what_if
from heartwheel.engine.replay.what_if_answer import Scenario, WhatIf
from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config
from heartwheel.front.cli.app import run
from support.heartbeat_logs import EXAMPLES

RECORDINGS = Path(__file__).parents[1] / "recordings"
CONFIG = CoordinatorConfig(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=0)

Log = list[dict[str, Any]]


def _ask(lines: Log, timeouts_ms: Sequence[int], until_ms: int, config: CoordinatorConfig = CONFIG) -> WhatIf:
    replay, signs = LogReplay(config), SignsOfLife()
    for line in lines:
        read = replay.feed(json.dumps(line).encode())
        if read is not None:
            signs.add(read)
    return what_if(signs, replay.finish(until_ms), timeouts_ms, replay.end_ms)


def _beats(member: str, times: Sequence[int], timeout_ms: int = 10_000, **more: Any) -> Log:
    beat = {"group_id": "g", "member_id": member, "session_timeout_ms": timeout_ms} | more
    return [{"t_ms": t_ms} | beat for t_ms in times]


def _in_order(*logs: Log) -> Log:
    return sorted((line for log in logs for line in log), key=lambda line: line["t_ms"])


def _counts(scenarios: Sequence[Scenario]) -> list[tuple[int, int]]:
    return [(scenario.expirations, scenario.false_expirations) for scenario in scenarios]


STEADY = range(0, 100_000, 3_000)
PAUSED = [*range(0, 30_001, 3_000), *range(45_000, 100_000, 3_000)]
DEAD = range(0, 30_001, 3_000)


@pytest.mark.parametrize("generation_id", [-1, 7])
def test_a_pause_is_false_and_a_death_is_not(generation_id: int) -> None:
    """A timeout that a pause reaches expires the paused member falsely; the dead one is expired by all that end."""
    log = _in_order(_beats("ok", STEADY), _beats("paused", PAUSED), _beats("dead", DEAD))
    log = [line | {"generation_id": generation_id} for line in log]
    answer = _ask(log, [14_999, 15_000, 15_001, 70_000, 70_001], until_ms=100_000)
    assert _counts(answer.scenarios) == [(2, 1), (2, 1), (1, 0), (1, 0), (0, 0)]
    longest = answer.longest_silence
    assert longest is not None
    assert (longest.silence_ms, longest.since_ms, longest.member_id) == (15_000, 30_000, "paused")
    assert (answer.heartbeat_interval_ms, answer.members) == (3_000, 3)


def test_delay_is_told_of_the_dead_alone() -> None:
    """Detection delay runs from the last sign of life of those who did not come back; nobody dead, no delay."""
    log = _in_order(_beats("paused", PAUSED), _beats("dead", DEAD))
    short, long = _ask(log, [6_000, 80_000], until_ms=100_000).scenarios
    assert (short.detection_delay_p50_ms, short.detection_delay_p99_ms) == (6_000, 6_000)
    assert (long.detection_delay_p50_ms, long.detection_delay_p99_ms) == (None, None)


def test_coming_back_at_another_generation_is_not_the_same_life() -> None:
    """A member of a classic group that is heard of at another generation only has not come back."""
    joins = [_join(0, "a"), _join(0, "b")]
    log = [*joins, *_classic_beats("a", [1_000, 40_000], 1), *_classic_beats("b", range(1_000, 40_000, 2_000), 1)]
    same = _ask(sorted(log, key=lambda line: line["t_ms"]), [20_000], until_ms=41_000)
    assert _counts(same.scenarios) == [(1, 1)]
    log = [line | {"generation_id": 5} if line["t_ms"] == 40_000 else line for line in log]
    other = _ask(sorted(log, key=lambda line: line["t_ms"]), [20_000], until_ms=41_000)
    assert _counts(other.scenarios) == [(1, 0)]


def test_dead_together_is_one_rebalance() -> None:
    """Members that fall silent together are awaited by one join phase; one that dies later needs another one."""
    pair = [_beats(member, DEAD) for member in ("a", "b")]
    log = _in_order(*pair, _beats("c", range(0, 60_001, 3_000)), _beats("ok", STEADY))
    (scenario,) = _ask(log, [9_000], until_ms=100_000).scenarios
    assert (scenario.expirations, scenario.rebalances) == (3, 2)


def test_leaving_ends_a_silence() -> None:
    """A member that left is not missed, however long ago it was."""
    leave = {"t_ms": 31_000, "type": "leave", "group_id": "g", "member_id": "gone"}
    answer = _ask([*_beats("gone", DEAD), leave], [5_000], until_ms=100_000)
    assert _counts([answer.recorded, *answer.scenarios]) == [(0, 0), (0, 0)]


def _join(t_ms: int, member: str, *, timeout_ms: int = 60_000) -> dict[str, Any]:
    return {
        "t_ms": t_ms,
        "type": "join",
        "group_id": "g",
        "member_id": "",
        "assigned_member_id": member,
        "group_instance_id": member,
        "session_timeout_ms": timeout_ms,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range"}],
    }


def _classic_beats(member: str, times: Sequence[int], generation: int) -> Log:
    return _beats(member, times, generation_id=generation, group_instance_id=member)


def test_waiting_for_others_is_no_silence() -> None:
    """A member that waits in a join phase is not expired, so its silence begins when the phase ends."""
    start = [_join(0, "a"), *_classic_beats("a", [10], 1)]
    again = _join(1_000, "a") | {"member_id": "a"}
    newcomer, awaited = _join(500, "b"), _classic_beats("a", [600, 900], 1)
    log = [*start, newcomer, *awaited, again, *_classic_beats("a", [5_000], 2)]
    answer = _ask(log, [3_999, 4_000, 4_001], until_ms=5_000)
    assert [scenario.false_expirations for scenario in answer.scenarios] == [1, 1, 0]
    delayed = CoordinatorConfig(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=20_000)
    alone = [_join(0, "a"), *_classic_beats("a", [21_000], 1)]
    assert _counts(_ask(alone, [1_000, 1_001], until_ms=21_000, config=delayed).scenarios) == [(1, 1), (0, 0)]


def test_expired_member_of_a_classic_group_is_missed_once() -> None:
    """After its expiration a classic member is refused: its last words are a sign of life and start no new silence."""
    log = [_join(0, "a", timeout_ms=10_000), _join(0, "b")]
    log += [*_classic_beats("a", [5_000], 1), *_classic_beats("b", range(1_000, 90_000, 3_000), 1)]
    log += _classic_beats("a", [20_000], 1)
    answer = _ask(sorted(log, key=lambda line: line["t_ms"]), [5_000, 15_001], until_ms=90_000)
    # b speaks of a generation that is over and never syncs at the one of 15 s. Its session and the time limit for syncs
    # were armed together, for 60 s both, so its session ends first, as Kafka arms the sessions first.
    assert _counts([answer.recorded]) == [(2, 1)]
    assert _counts(answer.scenarios) == [(1, 1), (0, 0)]


def test_absent_coordinator_misses_nobody() -> None:
    """While a group's coordinator is away no timer runs, and after the load every member has a whole session."""
    away = [{"t_ms": t_ms, "type": kind, "group_id": "g"} for t_ms, kind in ((12_000, "unload"), (40_000, "load"))]
    log = _in_order(_beats("a", [0, 10_000, 45_000]), away)
    answer = _ask(log, [1_999, 2_000, 5_000, 5_001, 9_999, 10_000], until_ms=45_000)
    assert [scenario.expirations for scenario in answer.scenarios] == [3, 3, 2, 1, 1, 1]


@st.composite
def _workers(draw: st.DrawFn) -> Log:
    # A loaded group without members refuses the generation it had, so that one member of each stays.
    lines = [line for group in ("g", "h") for line in _beats("ok", range(0, 45_000, 500), 1_000, group_id=group)]
    for member in ("a", "b", "c"):
        group = {"group_id": draw(st.sampled_from(["g", "h"]))}
        now = draw(st.integers(0, 3_000))
        for gap in draw(st.lists(st.sampled_from([300, 999, 1_000, 1_001, 2_500]), max_size=12)):
            lines += _beats(member, [now], 1_000, **group)
            now += gap
        if draw(st.booleans()):
            lines.append({"t_ms": now, "type": "leave", "member_id": member} | group)
    return sorted(lines, key=lambda line: line["t_ms"])


@given(_workers(), st.integers(0, 499), st.sampled_from([-1, 4]))
@settings(max_examples=2 * EXAMPLES)
def test_timeout_that_members_had_gives_what_the_engine_decided(log: Log, later_ms: int, generation: int) -> None:
    """Held against the timeout that all members had, the silences are the expirations that the rules decide."""
    lines = [line if line.get("type") else line | {"generation_id": generation} for line in log]
    until_ms = 44_500 + later_ms
    config = CoordinatorConfig(group_min_session_timeout_ms=1, default_session_timeout_ms=1_000)
    answer = _ask(lines, [1_000], until_ms, config)
    (again,) = answer.scenarios
    assert _counts([again]) == _counts([answer.recorded])
    assert again.detection_delay_p99_ms == answer.recorded.detection_delay_p99_ms


@pytest.mark.parametrize(
    ("name", "timeout_ms"), [("kill-one", 3_000), ("never-rejoins", 1_500), ("static-back-in-time", 5_000)]
)
def test_timeout_that_members_had_gives_what_the_broker_decided(name: str, timeout_ms: int) -> None:
    """The same on recordings of a real broker, whose members join, wait and are replaced."""
    meta = read_meta(RECORDINGS / name / "meta.json")
    lines = [json.loads(line) for line in (RECORDINGS / name / "events.jsonl").read_bytes().splitlines()]
    assert meta.end_ms is not None
    answer = _ask(lines, [timeout_ms], meta.end_ms, coordinator_config(meta.settings))
    (again,) = answer.scenarios
    assert (again.expirations, again.false_expirations, again.rebalances) == (
        answer.recorded.expirations,
        answer.recorded.false_expirations,
        answer.recorded.rebalances,
    )
    assert again.expirations > 0


def test_empty_log() -> None:
    """A log without a line has nothing to tell, and says so."""
    answer = _ask([], [10_000], until_ms=0)
    assert _counts([answer.recorded, *answer.scenarios]) == [(0, 0), (0, 0)]
    assert answer.longest_silence is None


def _write(path: Path, lines: Log) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table has a row for what was and one for each timeout, with the longest silence below."""
    log = _write(tmp_path / "log", _in_order(_beats("paused", PAUSED, 12_000), _beats("dead", DEAD, 12_000)))
    assert run(["replay", log, "--until", "100000", "--what-if", "session_timeout=10s,20s"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert rows[1][:7] == ["as", "it", "was", "2", "1", "12.0s", "12.0s"]
    assert rows[2][:5] == ["10s", "2", "1", "10.0s", "10.0s"]
    assert rows[3][:5] == ["20s", "1", "0", "20.0s", "20.0s"]
    assert "came back from: 15s (paused of g, from" in out


def test_poll_timeouts_are_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A member that left as it had not polled in time is no silence: the table says which setting it is about."""
    left = {
        "t_ms": 31_000,
        "type": "leave",
        "group_id": "g",
        "member_id": "slow",
        "reason": "consumer poll timeout has expired.",
    }
    log = [line | {"generation_id": 7} for line in _beats("slow", DEAD)]
    answer = _ask([*log, left], [20_000], until_ms=100_000)
    assert (answer.poll_timeouts, _counts(answer.scenarios)) == (1, [(0, 0)])
    assert run(["replay", _write(tmp_path / "log", [*log, left]), "--what-if", "session_timeout=20s"]) == 0
    assert "raise max.poll.interval.ms, or lower max.poll.records" in capsys.readouterr().out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` tells the same for machines, with the units in the names."""
    log = _write(tmp_path / "log", _beats("dead", DEAD))
    assert run(["replay", log, "--until", "100000", "--what-if", "session_timeout=15s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["scenarios"][0] == {
        "session_timeout_ms": 15_000,
        "expirations": 1,
        "false_expirations": 0,
        "detection_delay_p50_ms": 15_000,
        "detection_delay_p99_ms": 15_000,
        "rebalances": 1,
    }
    assert told["recorded"]["expirations"] == 1


@pytest.mark.parametrize(
    "asked", ["session_timeout", "session_timeout=", "session_timeout=10s,soon", "session_timeout=0s", "heartbeat=1s"]
)
def test_question_that_makes_no_sense(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A question that cannot be answered is wrong usage, told before a line is read."""
    assert run(["replay", "no-such-file", "--what-if", asked]) == 2
    assert "--what-if" in capsys.readouterr().err


def test_part_of_a_log_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """A silence may go on in the rest of a log, so a question about a part of it is refused."""
    assert run(["replay", "log", "--what-if", "session_timeout=10s", "--snapshot-in", "snapshot"]) == 2
    assert "whole log" in capsys.readouterr().err
