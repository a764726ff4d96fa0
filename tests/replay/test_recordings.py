"""The rules decide what a real broker decided: the same groups, kinds, members and generations, within 50 ms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heartwheel.engine.replay.log import LogReplay, replay_log
from heartwheel.engine.replay.meta import read_meta
from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config
from heartwheel.wire.verdicts import Verdict

RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings").glob("*/meta.json"))
TOLERANCE_MS = 50

every_recording = pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)


def _broker_of(folder: Path) -> tuple[CoordinatorConfig, int]:
    """Give the broker's settings, and when the recording ended, epoch ms."""
    meta = read_meta(folder / "meta.json")
    assert meta.end_ms is not None
    return coordinator_config(meta.settings), meta.end_ms


def _lines(folder: Path) -> list[bytes]:
    return (folder / "events.jsonl").read_bytes().splitlines()


def _decided(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "verdicts.jsonl").read_bytes().splitlines()]


def _agree(recorded: dict[str, Any], verdict: Verdict) -> bool:
    return (
        (recorded["group_id"], recorded["kind"], recorded["member_id"])
        == (verdict.group_id, verdict.kind.value, verdict.member_id)
        and recorded["generation_id"] in (None, verdict.generation_id)
        and abs(recorded["t_ms"] - verdict.time_ms) <= TOLERANCE_MS
    )


def _differences(recorded: list[dict[str, Any]], verdicts: list[Verdict]) -> tuple[list[Any], list[Any]]:
    left = list(verdicts)
    missing = []
    for one in recorded:
        match = next((v for v in left if _agree(one, v)), None)
        if match is None:
            missing.append(one)
        else:
            left.remove(match)
    return missing, left


def test_there_are_recordings() -> None:
    """The recordings are where the tests look for them."""
    assert {"kill-one", "never-rejoins", "static-back-in-time", "mixed-clients"} <= {
        folder.name for folder in RECORDINGS
    }


@every_recording
def test_recording_agrees(folder: Path) -> None:
    """Every verdict of the broker is ours, and none of ours is not the broker's."""
    assert _differences(_decided(folder), replay_log(_lines(folder), *_broker_of(folder))) == ([], [])


@pytest.mark.parametrize("name", ["kill-one", "never-rejoins", "static-back-in-time"])
def test_rules_agree_word_by_word_and_without_answers(name: str) -> None:
    """Where nothing is ambiguous the rules need no answer, and say the broker's own words in its order."""
    folder = next(folder for folder in RECORDINGS if folder.name == name)
    asked = [json.loads(line) for line in _lines(folder)]
    for request in asked:
        for answer in ("error", "answer_ms", "response_generation_id", "leader", "members"):
            request.pop(answer, None)
    verdicts = replay_log([json.dumps(r).encode() for r in asked], *_broker_of(folder))
    assert [(v.kind.value, v.reason) for v in verdicts] == [(d["kind"], d["reason"]) for d in _decided(folder)]


@every_recording
def test_replay_is_resumed_without_a_trace(folder: Path) -> None:
    """A replay that is cut anywhere and resumed from what it wrote down ends with the same verdicts."""
    lines, (config, end_ms) = _lines(folder), _broker_of(folder)
    run = LogReplay(config)
    for number, line in enumerate(lines):
        if number % 97 == 0:
            assert run.settle(json.loads(line)["t_ms"] - 1) == []  # later answers may change what they show
            run = LogReplay(config, snapshot=run.snapshot())
        run.feed(line)
    assert run.finish(end_ms) == replay_log(lines, config, end_ms)
