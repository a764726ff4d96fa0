"""The rules about member epochs decide what a real broker decided: same group, member, kind and epoch, within 50 ms."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heartwheel.engine.replay.log import LogReplay
from heartwheel.engine.replay.meta import read_meta
from heartwheel.front.cli.app import run
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.requests import decode_request
from support.epoch_logs import config_of

RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings_consumer").glob("*/meta.json"))
TOLERANCE_MS = 50
COMPARED = ("kind", "group_id", "member_id", "epoch", "timeout_ms", "new_member_id")

every_recording = pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)


def _rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def _agree(recorded: dict[str, Any], said: dict[str, Any]) -> bool:
    # A session's length is in no line of the broker's log.
    names = [name for name in COMPARED if name != "timeout_ms" or name in recorded]
    return all(recorded.get(name) == said.get(name) for name in names) and (
        abs(recorded["t_ms"] - said["t_ms"]) <= TOLERANCE_MS
    )


def test_there_are_recordings() -> None:
    """The recordings are where the tests look for them."""
    assert [folder.name for folder in RECORDINGS] == [
        "kill-one",
        "revocation-timeout",
        "static-return",
        "streams-static-return",
    ]


@every_recording
def test_command_says_what_the_broker_said(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`heartwheel replay` with the recording's meta.json: every verdict of the broker, in its order, and no other."""
    log, meta = tmp_path / "events.jsonl", tmp_path / "broker.json"
    shutil.copy(folder / "events.jsonl", log)
    shutil.copy(folder / "meta.json", meta)
    assert run(["replay", str(log), "--meta", str(meta)]) == 0
    said, decided = _rows(capsys.readouterr().out), _rows((folder / "verdicts.jsonl").read_text())
    assert len(said) == len(decided)
    assert [(one["t_ms"], one["kind"]) for one, two in zip(decided, said, strict=True) if not _agree(one, two)] == []


@every_recording
def test_reasons_are_the_words_of_the_broker(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is the broker's line, up to the hash or the assignor, which no request shows."""
    assert run(["replay", str(folder / "events.jsonl")]) == 0
    said, decided = _rows(capsys.readouterr().out), _rows((folder / "verdicts.jsonl").read_text())
    for one, two in zip(decided, said, strict=True):
        assert one["reason"].startswith(two["reason"].removesuffix(".")), one["kind"]


@every_recording
@pytest.mark.parametrize("cut", [1, 10, 35])
def test_cut_with_a_snapshot_changes_nothing(folder: Path, cut: int) -> None:
    """A replay that is written down and carried on tells what the whole one tells."""
    meta = read_meta(folder / "meta.json")
    config = config_of(meta.settings)
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    whole, first = (LogReplay(config, epochs=meta.epoch_config(config)) for _ in range(2))
    for line in lines:
        whole.feed(line)
    for line in lines[:cut]:
        first.feed(line)
    rest = LogReplay(config, snapshot=first.snapshot(), epochs=meta.epoch_config(config))
    for line in lines[cut:]:
        rest.feed(line)
    assert rest.finish(meta.end_ms) == whole.finish(meta.end_ms)


def test_without_the_overrides_of_the_group_the_session_is_the_brokers(tmp_path: Path) -> None:
    """The group's own session timeout comes from `group_overrides`: without it members would expire 5 s earlier."""
    folder = next(folder for folder in RECORDINGS if folder.name == "static-return")
    described = json.loads((folder / "meta.json").read_text())
    described["group_overrides"] = []
    (tmp_path / "meta.json").write_text(json.dumps(described))
    meta = read_meta(tmp_path / "meta.json")
    config = config_of(meta.settings)
    run_ = LogReplay(config, epochs=meta.epoch_config(config))
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        run_.feed(line)
    expired = [v for v in run_.finish(meta.end_ms) if v.kind.value == "member_expired"]
    assert {v.timeout_ms for v in expired} == {3_000}


@pytest.mark.parametrize("answers", [True, False])
def test_return_from_another_process_is_the_cause_of_its_bump(*, answers: bool) -> None:
    """The request of a static streams member that returns shows the bump, whether or not answers are recorded."""
    folder = next(folder for folder in RECORDINGS if folder.name == "streams-static-return")
    meta = read_meta(folder / "meta.json")
    config = config_of(meta.settings)
    replay = LogReplay(config, epochs=meta.epoch_config(config))
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        fields = json.loads(line)
        unanswered = {
            name: value for name, value in fields.items() if not name.startswith(("answer", "error", "assign"))
        }
        replay.feed(line if answers else json.dumps(unanswered).encode())
    bumped = [(v.epoch, v.cause) for v in replay.finish(meta.end_ms) if v.kind.value == "epoch_bumped"]
    assert bumped == [(2, "member_joined"), (3, "member_joined"), (4, "member_updated")]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"t_ms": 1, "type": "consumer_heartbeat", "group_id": "g", "member_id": "a"}', "member_epoch"),
        ('{"t_ms": 1, "type": "share_heartbeat", "group_id": "g", "member_epoch": 0}', "answer_member_id"),
        ('{"t_ms": 1, "type": "consumer_heartbeat", "group_id": "", "member_id": "a", "member_epoch": 0}', "group_id"),
        ('{"t_ms": -5, "type": "consumer_heartbeat", "group_id": "g", "member_id": "a", "member_epoch": 0}', "t_ms"),
        ('{"t_ms": 1, "type": "consumer_heartbeat", "group_id": "g", "member_id": "a", "member_epoch": -3}', "-2"),
    ],
)
def test_bad_line_is_named_and_left_out(
    line: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A heartbeat that cannot be one is named with its line and what is wrong; the others count."""
    good = '{"t_ms": 5, "type": "consumer_heartbeat", "group_id": "g", "member_id": "m", "member_epoch": 0}'
    (tmp_path / "log").write_text(f"{line}\n{good}\n")
    assert run(["replay", str(tmp_path / "log")]) == 1
    out = capsys.readouterr()
    assert out.err.startswith("line 1: ")
    assert word in out.err
    assert _rows(out.out)[0]["kind"] == "member_joined"


def test_bad_override_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A meta.json whose override is no number says so, with what one looks like."""
    meta = {"broker_conf": {}, "group_overrides": [{"group_id": "g", "consumer.session.timeout.ms": "soon"}]}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    assert run(["replay", str(RECORDINGS[0] / "events.jsonl"), "--meta", str(tmp_path / "meta.json")]) != 0
    assert "group override" in capsys.readouterr().err


@every_recording
def test_job_takes_the_lines_of_a_recording(folder: Path) -> None:
    """What a broker accepted is a record that the job can use, as it stands in the recording; its answer counts."""
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        if b'_heartbeat"' in line and b'"error":"NONE"' in line.replace(b" ", b""):
            request = decode_request(line)
            assert isinstance(request, GroupHeartbeat)
            assert request.accepted
