"""Recordings of real brokers, read from the middle by a source that knows the answers: right verdicts, or none.

The requests are those that a tap would pass on which was started at that moment (`heartwheel.sources.tap.requests`).
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from heartwheel.engine.replay.log import replay_log
from heartwheel.engine.replay.meta import read_meta
from heartwheel.engine.replay.recorded import Recorded, decode_line
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.manager import ClassicRules
from heartwheel.engine.rules.model import Group
from heartwheel.sources.tap.requests import ERRORS, with_begin_unseen
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.requests import Request, decode_request
from heartwheel.wire.verdicts import Verdict
from support.epoch_logs import config_of
from support.tied_logs import START_MS

TESTS = Path(__file__).parents[1]
RECORDINGS = sorted(path.parent for path in TESTS.glob("recordings*/*/meta.json"))
SMALL_LOGS = sorted((TESTS / "answered_logs").glob("*.jsonl"))
SMALL_END_MS = START_MS + 120_000

TOLERANCE_MS = 50
CUTS = 60
CODES = {name: code for code, name in ERRORS.items()}
END_OF_SESSION = "member_expired"


class Decided(NamedTuple):
    """What the coordinator decided of a member: when (epoch ms), what, and of whom."""

    t_ms: int
    kind: str
    group_id: str
    member_id: str | None


class Log(NamedTuple):
    """What is cut: requests with their answers, what was decided on them, and until when (epoch ms)."""

    lines: list[bytes]
    decided: list[Decided]
    config: EpochConfig
    end_ms: int

    @property
    def start_ms(self) -> int:
        """When the first request arrived, epoch ms."""
        return int(json.loads(self.lines[0])["t_ms"])


def _recording(folder: Path) -> Log:
    meta = read_meta(folder / "meta.json")
    said = [json.loads(line) for line in (folder / "verdicts.jsonl").read_bytes().splitlines()]
    decided = [Decided(each["t_ms"], each["kind"], each["group_id"], each.get("member_id")) for each in said]
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    assert meta.end_ms is not None
    return Log(lines, decided, meta.epoch_config(config_of(meta.settings)), meta.end_ms)


def _small_log(path: Path) -> Log:
    """Read a small log; what a whole reading decides is Kafka's (`test_answered_logs`)."""
    config, lines = CoordinatorConfig(), path.read_bytes().splitlines()
    verdicts = replay_log(lines, config, SMALL_END_MS)
    decided = [Decided(each.time_ms, each.kind.value, each.group_id, each.member_id) for each in verdicts]
    return Log(lines, decided, EpochConfig(config), SMALL_END_MS)


LOGS = {
    **{f"{folder.parent.name}/{folder.name}": folder for folder in RECORDINGS},
    **{path.name.partition("-")[0]: path for path in SMALL_LOGS},
}


def _log(name: str) -> Log:
    path = LOGS[name]
    return _recording(path) if path.is_dir() else _small_log(path)


def _answered(recorded: Recorded) -> Event:
    """Return the event as a tap passes it on: with the answer, and of a join its generation and its leader."""
    event, evidence = recorded.event, recorded.evidence
    code = CODES.get(evidence.error or "NONE", 1)
    if event.type is not EventType.JOIN or code:
        return msgspec.structs.replace(event, error_code=code)
    generation = -1 if evidence.response_generation_id is None else evidence.response_generation_id
    return msgspec.structs.replace(event, error_code=0, generation_id=generation, leader=evidence.leader or None)


def _relayed(log: Log) -> Iterator[tuple[int, int, Request]]:
    """Return when each request arrived and was answered, epoch ms, and what a tap passes on of it."""
    for number, line in enumerate(log.lines):
        fields = json.loads(line)
        answered_ms = fields.get("answer_ms") or fields["t_ms"]
        if fields["type"].endswith("_heartbeat"):
            if fields["error"] == "NONE":
                yield fields["t_ms"], answered_ms, decode_request(line)
            continue
        recorded = decode_line(line, number)
        if recorded is not None and not recorded.had_no_effect:
            yield fields["t_ms"], answered_ms, _answered(recorded)


def _rest(log: Log, start_ms: int, *, broker_log: bool) -> dict[str, list[tuple[int, Request]]]:
    """Return what a tap that begins at a moment passes on, by group, in the order of the times of the events."""
    found: dict[str, list[tuple[int, Request]]] = defaultdict(list)
    for at_ms, answered_ms, request in _relayed(log):
        if answered_ms >= start_ms:
            if isinstance(request, Event) and at_ms < start_ms:
                request = with_begin_unseen(request)  # noqa: PLW2901 - as the tap reads it
            found[request.group_id].append((max(at_ms, start_ms), request))
    for decided in log.decided if broker_log else ():
        if decided.kind == END_OF_SESSION and decided.t_ms >= start_ms:
            event = Event(group_id=decided.group_id, type=EventType.EXPIRED, member_id=decided.member_id or "")
            found[event.group_id].append((decided.t_ms, event))
    return {group_id: sorted(events, key=lambda each: each[0]) for group_id, events in found.items()}


def _wrong(log: Log, start_ms: int, *, broker_log: bool) -> list[Verdict]:
    """Return the expiries on the rest of a log that the coordinator did not decide, or not then."""
    verdicts: list[Verdict] = []
    for group_id, requests in _rest(log, start_ms, broker_log=broker_log).items():
        manager = ClassicRules(Group(group_id), log.config, verdicts.append)
        for at_ms, request in requests:
            manager.apply(request, at_ms)
        manager.advance(log.end_ms)
    return [each for each in verdicts if each.expiry_reason is not None and not _was_decided(each, log.decided)]


def _was_decided(verdict: Verdict, decided: list[Decided]) -> bool:
    return any(
        (verdict.group_id, verdict.member_id, verdict.kind.value) == (each.group_id, each.member_id, each.kind)
        and abs(verdict.time_ms - each.t_ms) <= TOLERANCE_MS
        for each in decided
    )


@pytest.mark.parametrize("broker_log", [False, True])
@pytest.mark.parametrize("name", LOGS)
def test_p1_verdicts_on_the_rest_of_a_log_are_right_or_absent(name: str, broker_log: bool) -> None:  # noqa: FBT001
    """Wherever a tap begins, whom it expires was expired by the broker's coordinator, then and in that way."""
    log, chance = _log(name), random.Random(name)
    for _ in range(CUTS):
        start_ms = chance.randrange(log.start_ms, log.end_ms)
        assert not _wrong(log, start_ms, broker_log=broker_log), start_ms - log.start_ms
