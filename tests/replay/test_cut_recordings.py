"""Recordings of real brokers, read from the middle by a source that knows the answers: right verdicts, or none.

The requests are those that a tap would pass on which was started at that moment (`heartwheel.tap.requests`).
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.replay.driver import broker_config
from heartwheel.replay.recorded import Recorded, decode_line
from heartwheel.tap.requests import ERRORS
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Verdict

RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings").glob("*/meta.json"))
UNSEEN_STATIC = "mixed-clients"
"""In it a static member is silent from before the cut until after the first join phase, and still a member: a reader
that begins there cannot know of it, and ends the next phase too soon (docs/groups.md)."""

TOLERANCE_MS = 50
CUTS = 60
CODES = {name: code for code, name in ERRORS.items()}


def _answered(recorded: Recorded) -> Event:
    """Return the event as a tap passes it on: with the answer, and of a join its generation and its leader."""
    event, evidence = recorded.event, recorded.evidence
    code = CODES.get(evidence.error or "NONE", 1)
    if event.type is not EventType.JOIN or code:
        return msgspec.structs.replace(event, error_code=code)
    generation = -1 if evidence.response_generation_id is None else evidence.response_generation_id
    return msgspec.structs.replace(event, error_code=0, generation_id=generation, leader=evidence.leader or None)


def _rest(folder: Path, start_ms: int, *, broker_log: bool) -> dict[str, list[tuple[int, Event]]]:
    """Return what a tap that begins at a moment passes on, by group, in the order of the times of the events."""
    found: dict[str, list[tuple[int, Event]]] = defaultdict(list)
    for number, line in enumerate((folder / "events.jsonl").read_bytes().splitlines()):
        recorded = decode_line(line, number)
        if recorded is None or recorded.had_no_effect:
            continue
        evidence = recorded.evidence
        if (evidence.answer_ms or evidence.t_ms) >= start_ms:
            found[recorded.event.group_id].append((max(evidence.t_ms, start_ms), _answered(recorded)))
    for decided in _decided(folder) if broker_log else ():
        if decided["kind"] == "member_expired" and decided["t_ms"] >= start_ms:
            event = Event(group_id=decided["group_id"], type=EventType.EXPIRED, member_id=decided["member_id"])
            found[event.group_id].append((decided["t_ms"], event))
    return {group_id: sorted(events, key=lambda each: each[0]) for group_id, events in found.items()}


def _decided(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "verdicts.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("broker_log", [False, True])
@pytest.mark.parametrize(
    "folder", [each for each in RECORDINGS if each.name != UNSEEN_STATIC], ids=lambda folder: folder.name
)
def test_p1_verdicts_on_the_rest_of_a_recording_are_right_or_absent(folder: Path, broker_log: bool) -> None:  # noqa: FBT001
    """Wherever a tap begins, whom it expires was expired by the broker's coordinator, then and in that way."""
    meta = json.loads((folder / "meta.json").read_text())
    config, decided = broker_config(meta["broker_conf"]), _decided(folder)
    chance = random.Random(folder.name)
    for _ in range(CUTS):
        start_ms = chance.randrange(meta["start_ms"], meta["end_ms"])
        for group_id, events in _rest(folder, start_ms, broker_log=broker_log).items():
            verdicts: list[Verdict] = []
            machine = GroupMachine(Group(group_id), config, verdicts.append)
            for at_ms, event in events:
                machine.apply(event, at_ms)
            machine.advance(meta["end_ms"])
            wrong = [verdict for verdict in verdicts if verdict.expiry_reason and not _was_decided(verdict, decided)]
            assert not wrong, (folder.name, start_ms - meta["start_ms"], wrong)


def _was_decided(verdict: Verdict, decided: list[dict[str, Any]]) -> bool:
    return any(
        (verdict.member_id, verdict.kind.value) == (each["member_id"], each["kind"])
        and abs(verdict.time_ms - each["t_ms"]) <= TOLERANCE_MS
        for each in decided
    )
