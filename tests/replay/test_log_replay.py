"""Replay of whole logs: the verdicts are those of the rules, and nothing but the log can be seen in them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.replay.log import LogReplay, replay_log
from heartwheel.engine.replay.output import encode_verdict
from heartwheel.engine.replay.snapshot import ReplaySnapshotError
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import LogBuilder, by_group, run_shard
from heartwheel.wire.events import RejectedError
from support.heartbeat_logs import CONFIG, EXAMPLES, T0, beating_logs, cuts_of, heartbeat_logs

LATER = 30_000
RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings").glob("*/meta.json"))


def _lines(log: LogBuilder) -> list[bytes]:
    values = [(record.append_ms, record.value or b"{}") for record in log.records]
    return [b'{"t_ms":%d,%s' % (t_ms, value[1:]) for t_ms, value in values]


def _beat(t_ms: int, group: str = "g", member: str = "m") -> bytes:
    return json.dumps({"t_ms": t_ms, "group_id": group, "member_id": member, "session_timeout_ms": 1_000}).encode()


@given(heartbeat_logs(in_order=True) | beating_logs(), st.data())
@settings(max_examples=2 * EXAMPLES)
def test_p3_verdicts_are_those_of_a_shard(log: LogBuilder, data: st.DataObject) -> None:
    """P3: the verdicts on each group are those of the engine's shard, however its batches are cut."""
    verdicts = run_shard(log, clock_ms=T0 + LATER, cuts=data.draw(cuts_of(log)), config=CONFIG)
    assert by_group(replay_log(_lines(log), CONFIG, T0 + LATER)) == by_group(verdicts)


@given(heartbeat_logs(), st.randoms(use_true_random=False))
def test_groups_may_come_in_any_order(log: LogBuilder, random: Random) -> None:
    """Only the order of a group's own lines counts: groups one after the other are groups side by side."""
    lines = _lines(log)
    apart = sorted(lines, key=lambda line: json.loads(line)["group_id"], reverse=random.random() < 0.5)
    run = LogReplay(CONFIG)
    for line in apart:
        run.feed(line)
    assert run.finish(T0 + LATER) == replay_log(lines, CONFIG, T0 + LATER)


def test_a_group_whose_times_step_back_is_raised() -> None:
    """A member that arrives, and beats at an earlier time after that, is alive from its arrival on."""
    run = LogReplay(CONFIG)
    for line in (_beat(T0 - 7, "h"), _beat(T0), _beat(T0 - 7)):
        run.feed(line)
    expired = [v for v in run.finish(T0 + LATER) if v.expiry_reason and v.group_id == "g"]
    assert [v.time_ms for v in expired] == [T0 + 1_000]


@given(heartbeat_logs() | beating_logs(), st.data())
@settings(max_examples=2 * EXAMPLES)
def test_p3_log_cut_anywhere_is_resumed_without_a_trace(log: LogBuilder, data: st.DataObject) -> None:
    """P3: a log cut between any two lines, any number of times, ends with the same bytes as the log in one piece."""
    lines = _lines(log)
    cuts = data.draw(st.sets(st.integers(0, len(lines)), max_size=4))
    run = LogReplay(CONFIG)
    for number, line in enumerate(lines):
        if number in cuts:
            run = LogReplay(CONFIG, snapshot=run.snapshot())
        run.feed(line)
    told = [encode_verdict(verdict) for verdict in run.finish(T0 + LATER)]
    assert told == [encode_verdict(verdict) for verdict in replay_log(lines, CONFIG, T0 + LATER)]


@given(heartbeat_logs(in_order=True) | beating_logs(), st.data())
@settings(max_examples=2 * EXAMPLES)
def test_p3_log_cut_in_time_is_told_piece_by_piece(log: LogBuilder, data: st.DataObject) -> None:
    """P3: where a log is known to be complete up to a moment, the pieces that are told make up the whole."""
    lines = _lines(log)
    moments = sorted(data.draw(st.sets(st.integers(T0 - 1, T0 + LATER), max_size=4)))
    run, told, rest = LogReplay(CONFIG), [], list(lines)
    for moment in moments:
        while rest and json.loads(rest[0])["t_ms"] <= moment:
            run.feed(rest.pop(0))
        told += run.settle(moment)
        run = LogReplay(CONFIG, snapshot=run.snapshot())
    for line in rest:
        run.feed(line)
    # The end is the newest line, or the moment if that is later.
    until_ms = max([T0 - 1, *moments, *(json.loads(line)["t_ms"] for line in lines)]) + data.draw(st.integers(0, LATER))
    assert told + run.finish(until_ms) == replay_log(lines, CONFIG, until_ms)


def test_answers_of_one_group_do_not_touch_another() -> None:
    """Whether answers are weighed is decided for each group by its first request."""
    refused = json.dumps(json.loads(_beat(900, "told")) | {"error": "UNKNOWN_MEMBER_ID"}).encode()
    answered = json.dumps(json.loads(_beat(0, "told")) | {"error": "NONE"}).encode()
    config = CoordinatorConfig(group_min_session_timeout_ms=1)
    verdicts = replay_log([answered, _beat(0, "plain"), refused, _beat(900, "plain")], config, 1_500)
    assert [(v.group_id, v.time_ms) for v in verdicts if v.expiry_reason] == [("told", 1_000)]


def test_line_before_a_settled_moment_is_refused() -> None:
    """A line that comes after its time was said to be complete is refused by name; the next moment is still open."""
    run = LogReplay(CONFIG)
    run.feed(_beat(T0))
    run.settle(T0 + 10)
    with pytest.raises(RejectedError, match="complete up to"):
        run.feed(_beat(T0 + 10))
    run.feed(_beat(T0 + 11))


def test_empty_log_has_no_verdicts() -> None:
    """Nothing comes of nothing, at whatever time, and it can be cut too."""
    run = LogReplay(CONFIG, snapshot=LogReplay(CONFIG).snapshot())
    assert run.finish() == []
    assert replay_log([], CONFIG, T0) == []


@pytest.mark.parametrize("length", [0, 1, 100, -2])
def test_cut_snapshot_is_refused(length: int) -> None:
    """A snapshot that is not whole is an error with a hint, never an empty start."""
    run = LogReplay(CONFIG)
    run.feed(_beat(T0))
    with pytest.raises(ReplaySnapshotError, match="not a whole snapshot"):
        LogReplay(CONFIG, snapshot=run.snapshot()[:length])


@pytest.mark.parametrize("number", [2, 99])
def test_snapshot_of_another_version_is_refused_by_name(number: int) -> None:
    """Another format is named, whatever else is in it: format 2 held the shards of an engine."""
    with pytest.raises(ReplaySnapshotError, match=f"format {number}"):
        LogReplay(CONFIG, snapshot=b'{"format":%d,"other":[]}' % number)


def test_snapshot_under_other_rules_is_refused_by_name() -> None:
    """Carrying on with other settings would mix two replays: the first difference is named with a hint."""
    snapshot = LogReplay(CONFIG).snapshot()
    with pytest.raises(ReplaySnapshotError, match="group_max_size = 3, not"):
        LogReplay(dataclasses.replace(CONFIG, group_max_size=4), snapshot=snapshot)
