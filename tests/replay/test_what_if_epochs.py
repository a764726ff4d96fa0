"""What if, for groups that go by member epochs: sessions, rebalance timeouts and heartbeat intervals."""

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
from heartwheel.engine.replay.revocations import Revocations, RevocationScenario, RevocationsWhatIf, what_if_revocations
from heartwheel.engine.replay.signs import SignsOfLife
from heartwheel.engine.replay.what_if import what_if, what_if_intervals
from heartwheel.engine.replay.what_if_answer import Scenario, WhatIf
from heartwheel.front.cli.app import run
from heartwheel.wire.verdicts import Verdict
from support.epoch_logs import SESSION_MS, START_MS, EpochLog, config_of
from support.heartbeat_logs import EXAMPLES

RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings_consumer").glob("*/meta.json"))
ALL, HALF = {"t": [0, 1, 2, 3]}, {"t": [0, 1]}

every_recording = pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)


def _fed(log: EpochLog, until_ms: int) -> tuple[SignsOfLife, Revocations, list[Verdict], int]:
    signs, revocations = SignsOfLife(), Revocations()
    replay = LogReplay(log.config, epochs=log.epochs, revocations=revocations)
    for line in log.lines:
        read = replay.feed(json.dumps(line).encode())
        if read is not None:
            signs.add(read)
    verdicts = replay.finish(START_MS + until_ms)
    return signs, revocations, verdicts, replay.end_ms


def _ask(log: EpochLog, timeouts_ms: Sequence[int], until_ms: int, kind: str = "") -> WhatIf:
    signs, _, verdicts, end_ms = _fed(log, until_ms)
    return what_if(signs, verdicts, timeouts_ms, end_ms, kind)


def _ask_revocations(log: EpochLog, timeouts_ms: Sequence[int], until_ms: int) -> RevocationsWhatIf:
    _, revocations, verdicts, end_ms = _fed(log, until_ms)
    return what_if_revocations(revocations, verdicts, timeouts_ms, end_ms)


def _counts(*scenarios: Scenario) -> list[tuple[int, int, int]]:
    return [(each.expirations, each.false_expirations, each.rebalances) for each in scenarios]


def _fenced(*scenarios: RevocationScenario) -> list[tuple[int, int]]:
    return [(each.fenced, each.false_fenced) for each in scenarios]


def _beats(log: EpochLog, member: str, times: Sequence[int]) -> None:
    for at_ms in times:
        log.beat(at_ms, member, 0 if at_ms == times[0] else 2)


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_pause_is_false_and_a_death_is_not(kind: str) -> None:
    """A timeout that a pause reaches expires the paused member falsely; each expiration is an epoch of its own."""
    setting: dict[str, Any] = {f"group_{kind}_session_timeout_ms": 60_000}
    log = EpochLog(kind, **setting)
    _beats(log, "paused", [0, 2_000, 4_000, 14_000, 16_000, 18_000])
    _beats(log, "dead", [1_000, 3_000])
    log.lines.sort(key=lambda line: line["t_ms"])
    answer = _ask(log, [9_999, 10_000, 10_001, 20_000], 19_000)
    assert _counts(answer.recorded, *answer.scenarios) == [(0, 0, 0), (2, 1, 2), (2, 1, 2), (1, 0, 1), (0, 0, 0)]
    longest = answer.longest_silence
    assert longest is not None
    assert (longest.silence_ms, longest.member_id, answer.heartbeat_interval_ms) == (10_000, "paused", 2_000)


def test_commits_and_refused_heartbeats_start_no_session() -> None:
    """Neither keeps a member alive in Kafka, and a refused heartbeat shows that it lives all the same."""
    log = EpochLog(group_consumer_session_timeout_ms=60_000)
    log.ok(0, "a", 0, 2)
    log.line(1_000, type="offset_commit", member_id="a", member_epoch=2, error="NONE")
    log.line(1_500, type="commit", member_id="a", generation_id=2, error="NONE")
    log.beat(4_000, "a", 1, error="FENCED_MEMBER_EPOCH")
    answer = _ask(log, [3_999, 4_000, 4_001], 9_000)
    assert [each.false_expirations for each in answer.scenarios] == [1, 1, 0]
    assert [each.expirations for each in answer.scenarios] == [1, 1, 0]


def test_an_expired_member_starts_no_session_before_it_joins_again() -> None:
    """What it says after its expiration is refused; with epoch 0 it is a member again."""
    log = EpochLog()
    log.beat(0, "a", 0)
    log.beat(5_000, "a", 2)
    log.beat(6_000, "a", 0)
    answer = _ask(log, [SESSION_MS, 5_500], 12_000)
    assert _counts(answer.recorded, *answer.scenarios) == [(2, 1, 2), (2, 1, 2), (1, 0, 1)]


@pytest.mark.parametrize("classic_first", [True, False])
def test_classic_members_that_are_met_in_mid_life_are_asked_about(*, classic_first: bool) -> None:
    """Their heartbeats, joins and syncs start a session each, and each expiration is an epoch of the consumer group."""
    log = EpochLog(group_consumer_session_timeout_ms=600_000, default_session_timeout_ms=600_000)
    log.ok(100 if classic_first else 0, "n", 7, 7)
    for at_ms in (50, 3_000, 13_000, 16_000):
        log.line(at_ms, type="heartbeat", member_id="paused", generation_id=7, error="NONE", api_version=4)
    log.line(60, type="heartbeat", member_id="dead", generation_id=7, error="NONE", api_version=4)
    log.line(19_000, type="join", member_id="paused", error="NONE", response_generation_id=7, api_version=9)
    log.lines[-1] |= {"session_timeout_ms": 600_000, "protocol_type": "consumer", "protocols": [{"name": "range"}]}
    log.line(22_000, type="sync", member_id="paused", generation_id=7, error="NONE", api_version=5)
    log.ok(23_000, "n", 7, 7)
    log.lines.sort(key=lambda line: line["t_ms"])
    answer = _ask(log, [9_999, 10_001, 24_000], 24_000)
    # `n` is silent for 23 s, `paused` for 10 s at the most, `dead` for ever.
    assert _counts(answer.recorded, *answer.scenarios) == [(0, 0, 0), (3, 2, 3), (2, 1, 2), (0, 0, 0)]
    assert answer.members == 3


def test_only_members_of_the_kind_are_asked_about() -> None:
    """The broker's setting for consumer groups changes nothing for a share group, nor for a worker."""
    log = EpochLog()
    log.beat(0, "a", 0)
    log.line(0, type="share_heartbeat", member_id="s", member_epoch=0)
    log.lines[-1]["group_id"] = "shared"
    log.line(0, member_id="w", session_timeout_ms=1_000)
    log.lines[-1]["group_id"] = "workers"
    answers = {kind: _ask(log, [2_000], 10_000, kind) for kind in ("", "consumer", "share", "streams")}
    assert {kind: answer.members for kind, answer in answers.items()} == {
        "": 3,
        "consumer": 1,
        "share": 1,
        "streams": 0,
    }
    assert {kind: _counts(*answer.scenarios) for kind, answer in answers.items()} == {
        "": [(3, 0, 3)],
        "consumer": [(1, 0, 1)],
        "share": [(1, 0, 1)],
        "streams": [(0, 0, 0)],
    }


@every_recording
def test_timeout_that_members_had_gives_what_the_broker_decided(folder: Path) -> None:
    """Held against the timeout that a real broker had, the silences are the expirations that its log tells."""
    meta = read_meta(folder / "meta.json")
    config = config_of(meta.settings)
    epochs, signs = meta.epoch_config(config), SignsOfLife()
    replay = LogReplay(config, epochs=epochs)
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        read = replay.feed(line)
        if read is not None:
            signs.add(read)
    kind = "streams" if folder.name.startswith("streams") else "consumer"
    of_the_broker: int = getattr(config, f"group_{kind}_session_timeout_ms")
    (timeout_ms,) = {one.value for one in meta.overrides if one.value is not None} or {of_the_broker}
    told = [json.loads(line)["kind"] for line in (folder / "verdicts.jsonl").read_text().splitlines()]
    answer = what_if(signs, replay.finish(meta.end_ms), [timeout_ms], replay.end_ms)
    assert answer.recorded.expirations == told.count("member_expired") > 0
    assert _counts(*answer.scenarios) == _counts(answer.recorded)


def test_revocation_timeout_of_a_real_broker(capsys: pytest.CaptureFixture[str]) -> None:
    """The member that a real broker fenced after 2 s is fenced by 2 s, and by none that outlasts the recording."""
    folder = next(folder for folder in RECORDINGS if folder.name == "revocation-timeout")
    log = str(folder / "events.jsonl")
    assert run(["replay", log, "--what-if", "rebalance_timeout=2s,60s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["recorded"]["fenced"], told["recorded"]["free_after_p50_ms"]) == (1, 2_000)
    assert [scenario["fenced"] for scenario in told["scenarios"]] == [1, 0]


def _revoked(log: EpochLog) -> None:
    """Take half of its partitions away from a member that has all, and has 5 s to give them back."""
    log.ok(0, "a", 0, 2, subscribed_topics=["t"], owned={}, assignment=ALL, rebalance_timeout_ms=5_000)
    log.ok(1_000, "a", 2, 2, owned=ALL)
    log.ok(2_000, "a", 2, 2, assignment=HALF)


def test_slow_revocation_is_false_and_frees_its_partitions_when_it_is_fenced() -> None:
    """Who gives back after 4 s is fenced by 4 s or less, as a timer comes before a request of the same moment."""
    log = EpochLog(group_consumer_session_timeout_ms=60_000)
    _revoked(log)
    log.ok(4_000, "a", 2, 2)
    log.ok(6_000, "a", 2, 3, owned=HALF)
    answer = _ask_revocations(log, [3_999, 4_000, 4_001], 20_000)
    assert _fenced(answer.recorded, *answer.scenarios) == [(0, 0), (1, 1), (1, 1), (0, 0)]
    assert [each.free_after_p50_ms for each in answer.scenarios] == [3_999, 4_000, 4_000]
    assert answer.longest is not None
    assert (answer.revocations, answer.longest.took_ms, answer.longest.since_ms) == (1, 4_000, START_MS + 2_000)


def test_member_that_was_fenced_and_came_back_was_at_work() -> None:
    """Its join after the fence tells when its callback was done: a longer timeout would have kept it."""
    log = EpochLog(group_consumer_session_timeout_ms=60_000)
    _revoked(log)
    log.ok(6_000, "a", 2, 2)
    log.beat(8_000, "a", 2, error="UNKNOWN_MEMBER_ID")
    log.ok(11_000, "a", 0, 4, subscribed_topics=["t"], owned={}, assignment=ALL, rebalance_timeout_ms=5_000)
    answer = _ask_revocations(log, [5_000, 8_999, 9_000, 9_001], 20_000)
    assert _fenced(answer.recorded, *answer.scenarios) == [(1, 1), (1, 1), (1, 1), (1, 1), (0, 0)]


@pytest.mark.parametrize("end", ["leave", "expire", "never"])
def test_member_that_never_gives_back_is_no_false_one(end: str) -> None:
    """It left, its session ran out, or the log ends: nothing says that it was at work."""
    log = EpochLog()
    _revoked(log)
    log.lines[0]["rebalance_timeout_ms"] = 60_000
    until_ms = {"leave": 30_000, "expire": 30_000, "never": 4_500}[end]
    if end == "leave":
        log.ok(4_000, "a", -1, -1)
    answer = _ask_revocations(log, [1_000, 10_000], until_ms)
    assert _fenced(answer.recorded, *answer.scenarios) == [(0, 0), (1, 0), (0, 0)]
    freed = {"leave": 2_000, "expire": SESSION_MS, "never": None}[end]
    assert [each.free_after_p50_ms for each in answer.scenarios] == [1_000, freed]
    assert answer.longest is None


def test_a_load_gives_a_whole_rebalance_timeout() -> None:
    """While the coordinator is away nobody is fenced, and the stretch begins anew with the load (`onLoaded`)."""
    log = EpochLog(group_consumer_session_timeout_ms=60_000)
    _revoked(log)
    log.line(3_000, type="unload")
    log.line(9_000, type="load")
    log.ok(11_000, "a", 2, 3, owned=HALF)
    answer = _ask_revocations(log, [1_000, 1_001, 2_000, 2_001], 20_000)
    assert [each.fenced for each in answer.scenarios] == [2, 1, 1, 0]


@st.composite
def _groups(draw: st.DrawFn) -> EpochLog:
    """Write the log of a broker: what comes within a session is accepted, and what comes later is to join again."""
    log = EpochLog(draw(st.sampled_from(["consumer", "share", "streams"])))
    for member in ("a", "b", "c"):
        now, joins = draw(st.integers(0, 3_000)), True
        for gap in draw(st.lists(st.sampled_from([300, 999, 2_999, 3_000, 3_001, 7_500]), max_size=10)):
            if joins:
                log.ok(now, member, 0, 2)
            else:
                log.ok(now, member, 2, 2)
            now, joins = now + gap, gap >= SESSION_MS or draw(st.booleans())
            if gap >= SESSION_MS and draw(st.booleans()):
                log.beat(now, member, 2, error="UNKNOWN_MEMBER_ID")
                now += 50
        if not joins and draw(st.booleans()):
            log.ok(now, member, -1, -1)
    log.lines.sort(key=lambda line: line["t_ms"])
    return log


@given(_groups(), st.integers(0, 4_000))
@settings(max_examples=2 * EXAMPLES)
def test_timeout_that_members_had_gives_what_the_rules_decided(log: EpochLog, later_ms: int) -> None:
    """Held against the timeout that all members had, the silences are the expirations that the rules decide."""
    answer = _ask(log, [SESSION_MS], 40_000 + later_ms)
    assert _counts(*answer.scenarios) == _counts(answer.recorded)
    (again,) = answer.scenarios
    assert again.detection_delay_p99_ms == answer.recorded.detection_delay_p99_ms


def test_heartbeat_interval_costs_and_lengthens_silences() -> None:
    """Half the interval is twice the heartbeats; a longer one lengthens the worst silence by what it is longer."""
    log = EpochLog(group_consumer_session_timeout_ms=60_000)
    _beats(log, "a", [0, 2_000, 4_000, 10_000, 12_000, 14_000])
    signs, _, verdicts, end_ms = _fed(log, 20_000)
    answer = what_if_intervals(signs, verdicts, [1_000, 2_000, 5_000, 30_000], end_ms)
    assert (answer.heartbeat_interval_ms, answer.recorded.heartbeats_per_s) == (2_000, 0.25)
    assert [each.heartbeats_per_s for each in answer.scenarios] == pytest.approx([0.5, 0.25, 0.1, 1 / 60])
    assert [each.longest_silence_ms for each in answer.scenarios] == [6_000, 6_000, 9_000, 34_000]


def _write(tmp_path: Path, log: EpochLog) -> str:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in log.lines))
    return str(path)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("group_consumer_session_timeout=1s", ["session timeout", "1 member of consumer groups"]),
        ("rebalance_timeout=1s", ["rebalance timeout", "back 1 time.", "a of g", "4s"]),
        ("heartbeat_interval=5s", ["heartbeats a second", "1 member."]),
    ],
)
def test_tables(question: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each question has its table, with what to make of it below."""
    log = EpochLog()
    _revoked(log)
    log.ok(6_000, "a", 2, 3, owned=HALF)
    assert run(["replay", _write(tmp_path, log), "--what-if", question]) == 0
    out = capsys.readouterr().out
    assert [word for word in words if word not in out] == []


def test_a_log_without_revocations_has_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody was asked to give partitions back, so that nobody would have been fenced is not known."""
    log = EpochLog()
    _beats(log, "a", [0, 2_000, 4_000])
    assert run(["replay", _write(tmp_path, log), "--what-if", "rebalance_timeout=1s"]) == 0
    out = capsys.readouterr().out
    assert "it cannot say what a rebalance timeout does" in out
    assert "fenced" not in out


def test_json_of_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` names units, and `null` is for what the members had."""
    log = EpochLog()
    _beats(log, "a", [0, 2_000, 4_000])
    answer: dict[str, Any]
    assert run(["replay", _write(tmp_path, log), "--what-if", "heartbeat_interval=4s", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recorded"] == {"heartbeat_interval_ms": None, "heartbeats_per_s": 0.5, "longest_silence_ms": 2_000}
    assert answer["scenarios"][0]["heartbeats_per_s"] == 0.25


def test_poll_timeouts_are_known_by_the_return(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who left and came back under its id had not polled in time: the table says which setting that is about."""
    log = EpochLog()
    for member in ("late", "closed"):
        log.ok(0, member, 0, 2)
        log.ok(1_000, member, -1, -1)
    log.ok(4_000, "late", 0, 5)
    assert _ask(log, [1_000], 5_000).poll_timeouts == 1
    assert run(["replay", _write(tmp_path, log), "--what-if", "session_timeout=1s"]) == 0
    assert "took themselves out 1 time by a poll timeout" in capsys.readouterr().out
