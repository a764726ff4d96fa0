"""The demo's judge holds every row of every group against the log, by rules that are none of the engine's."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.front.demo.tally import Tally
from heartwheel.front.demo.verdicts_judged import Derivation, OutputRow, VerdictsJudged, judge_verdicts
from heartwheel.kafka.readback import LogRecord
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.members.judge import SentHeartbeats
from heartwheel.proof.members.members import group_name
from heartwheel.proof.members.mix import MixedMembers, mixed_steps
from heartwheel.proof.members.schedule import Action, FeedPlan
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.rebalances import list_rebalances
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow, row_of
from heartwheel.wire.verdicts import Verdict, topic_of
from support.output_rows import topic_rows

T0 = 1_795_000_000_000
PLAN = FeedPlan(
    groups=20,
    members_per_group=5,
    heartbeat_interval_ms=2_000,
    session_timeout_ms=6_000,
    duration_ms=60_000,
    kill_rate=0.6,
    protocol="mix",
)
UNTIL_MS = T0 + 60_000
PARTITIONS = 3


class Log(NamedTuple):
    """Hold what was fed, and what the engine's rules say of it."""

    records: list[LogRecord]
    rows: list[OutputRow]


@cache
def log() -> Log:
    """Feed the mix for a minute, two seconds of a canary with it."""
    records: list[LogRecord] = []
    said: list[Verdict] = []
    machines = {
        name: GroupMachine(Group(name), CoordinatorConfig(), said.append)
        for name in (group_name(PLAN, number) for number in range(PLAN.groups))
    }
    partition_of = {name: number % PARTITIONS for number, name in enumerate(machines)}
    members = MixedMembers(PLAN)
    for step in mixed_steps(PLAN):
        if step.action is Action.GARBAGE:
            continue
        for sent in list(members.act(step.member, step.action, step.at_ms)):
            event, append_ms = msgspec.json.decode(sent.value, type=Event), T0 + round(step.at_ms) + 20
            machines[event.group_id].apply(event, append_ms)
            members.landed(sent, append_ms, step.at_ms + 30)
            records.append(LogRecord(partition_of[event.group_id], len(records), append_ms, b"", sent.value, []))
    for machine in machines.values():
        machine.advance(UNTIL_MS)
    canary = encode_event(Event(group_id="canary-1", member_id="c", session_timeout_ms=6_000))
    records.append(LogRecord(0, len(records), T0, b"", canary, []))
    rows = [row_of(each, shard=0, detected_ms=each.time_ms) for each in said if topic_of(each)]
    return Log(records, [OutputRow(row, T0 + 61_000) for row in rows])


def judged(rows: list[OutputRow], until_ms: int = UNTIL_MS) -> VerdictsJudged:
    """Judge rows against the log."""
    beats = SentHeartbeats(left_out="canary")
    for record in log().records:
        beats.add(record)
    derivation = Derivation(AuditConfig(), left_out="canary")
    derivation.read(log().records)
    return judge_verdicts(derivation, rows, until_ms=until_ms, is_presence=beats.judged)


def of_classic(one: OutputRow, *, expired: bool) -> bool:
    """Tell whether a row is one about a classic group."""
    return isinstance(one.row, ExpirationRow) is expired and one.row.group_id in {"payments", "shipping"}


def test_what_the_engine_says_is_right() -> None:
    """Of a minute of the mix every expiration, every rebalance and every arrival is expected, and written."""
    found = judged(log().rows)
    assert found.ok
    assert found.fed == len(log().records) - 1
    assert found.begun > 20
    for each in (found.expirations, found.rebalances, found.arrivals):
        assert each.expected == each.written > 0
        assert (each.false, each.missed) == (0, 0)


def test_page_and_terminal_count_the_same_rebalances() -> None:
    """The page, the line of the running demo and its table count those that began, also while they run."""
    rows = sorted((each.row for each in log().rows if isinstance(each.row, TriggerRow)), key=lambda row: row.time_ms)
    last_begun = max(at for at, row in enumerate(rows) if row.type == "rebalance_triggered" and row.is_rebalance)
    for shown in (rows[: last_begun + 1], rows):
        picture, tally = Picture(), Tally(shards=1)
        picture.apply(topic_rows(*shown), now_ms=UNTIL_MS)
        tally.take(topic_rows(*shown), UNTIL_MS)
        on_page = sum(group.rebalances for group in list_rebalances(picture).groups)
        assert on_page == tally.rebalances == judged(log().rows).begun


@pytest.mark.parametrize("expired", [True, False])
def test_a_row_that_is_not_there_is_missed(expired: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """An expiration or a rebalance that the log gives and nobody wrote is named; before its time it is none."""
    gone = next(each for each in log().rows if of_classic(each, expired=expired))
    rest = [each for each in log().rows if each is not gone]
    found = judged(rest)
    part = found.expirations if expired else found.rebalances
    assert (part.missed, part.false, found.ok) == (1, 0, False)
    assert part.examples_missed[0].group_id == gone.row.group_id
    time_ms = gone.row.deadline_ms if isinstance(gone.row, ExpirationRow) else gone.row.time_ms
    early = judged([each for each in rest if each.row.detected_ms < time_ms], until_ms=time_ms - 1)
    assert early.ok


@pytest.mark.parametrize("expired", [True, False])
def test_a_row_that_the_log_does_not_give_is_false(expired: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A verdict of another id than any that is derived is false, and so is one that says something else of itself."""
    one = next(each for each in log().rows if of_classic(each, expired=expired))
    forged = msgspec.structs.replace(one, row=msgspec.structs.replace(one.row, id="0" * 32))
    wrong = msgspec.structs.replace(one, row=msgspec.structs.replace(one.row, generation_id=99))
    for rows in ([*log().rows, forged], [wrong if each is one else each for each in log().rows]):
        found = judged(rows)
        part = found.expirations if expired else found.rebalances
        assert (part.false, found.ok) == (1, False)
        assert part.examples_false[0].detail


def test_a_row_that_came_twice_is_allowed() -> None:
    """At least once is what is promised: a repeated row with its id changes nothing."""
    assert judged([*log().rows, *log().rows]) == judged(log().rows)
