"""The demo is judged by the audit: whatever is false or missing on its topics is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.front.demo.judge import DemoJudgement, judge_log
from heartwheel.front.demo.tally import Tally
from heartwheel.proof.audit import Audit, AuditConfig
from heartwheel.proof.audit.feed import AuditedRecord, AuditedTopic
from heartwheel.proof.audit.match.rows import topic_of as topic_of_row
from heartwheel.proof.audit.order import in_log_order
from heartwheel.proof.members.members import group_name
from heartwheel.proof.members.mix import MixedMembers, mixed_steps
from heartwheel.proof.members.schedule import Action, FeedPlan
from heartwheel.proof.members.truth import LifeLine, Turn
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.rebalances import list_rebalances
from heartwheel.settings import Settings
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


Row = ExpirationRow | TriggerRow


class Fed(NamedTuple):
    """What was fed, and the rows of the engine's rules."""

    records: list[AuditedRecord]
    rows: list[Row]


class Log:
    """A log in memory, with the rows of a test."""

    name = ""

    def __init__(self, rows: list[Row]) -> None:
        self._written = [
            record(AuditedTopic(topic_of_row(row)), 0, at, T0 + 61_000, msgspec.json.encode(row))
            for at, row in enumerate(rows)
        ]

    def newest_status(self) -> Iterable[AuditedRecord]:
        """Read none."""
        return ()

    rejects = newest_status

    def entries(self) -> Iterator[AuditedRecord]:
        """Read everything."""
        yield from in_log_order([[each for each in fed().records if each.partition == at] for at in range(PARTITIONS)])
        yield from self._written

    def ends(self) -> dict[AuditedTopic, dict[int, int]]:
        """Return nothing: no audit continues."""
        return {}


def record(source: AuditedTopic, partition: int, offset: int, append_ms: int, value: bytes) -> AuditedRecord:
    """Make a record of a topic."""
    return AuditedRecord(append_ms, source, partition, offset, value, partition, offset)


@cache
def fed() -> Fed:
    """Feed the mix for a minute, and a canary in each partition, a second longer."""
    records: list[AuditedRecord] = []
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
            place = partition_of[event.group_id], len(records)
            records.append(record(AuditedTopic.HEARTBEATS, *place, append_ms, sent.value))
    for machine in machines.values():
        machine.advance(UNTIL_MS)
    for partition in range(PARTITIONS):
        canary = Event(group_id=f"heartwheel-canary-{partition}", member_id="c", session_timeout_ms=6_000)
        place = partition, len(records)
        records.append(record(AuditedTopic.HEARTBEATS, *place, UNTIL_MS + 1_000, encode_event(canary)))
    return Fed(records, [row_of(each, shard=0, detected_ms=each.time_ms) for each in said if topic_of(each)])


def judged(rows: list[Row], *killed: LifeLine, until_ms: int = UNTIL_MS) -> DemoJudgement:
    """Judge rows against the log."""
    config = AuditConfig(judge_rejects=False, examples_max=1_000)
    return judge_log(Audit(config), Log(rows), killed, Settings(), until_ms=until_ms)


def of_classic(row: Row, *, expired: bool) -> bool:
    """Tell whether a row is one about a classic group."""
    return isinstance(row, ExpirationRow) is expired and row.group_id in {"payments", "shipping"}


def test_what_the_engine_says_is_right() -> None:
    """Of a minute of the mix every expiration, every rebalance and every arrival is expected, and written."""
    found = judged(fed().rows)
    assert found.report.ok, found.report.findings
    assert found.report.confirmed > 20
    assert found.begun > 20
    assert found.expected(AuditedTopic.EXPIRATIONS) == found.expired > 0
    assert found.expected(AuditedTopic.TRIGGERS) == found.triggers > found.begun
    assert found.false == 0


def test_page_and_terminal_count_the_same_rebalances() -> None:
    """The page, the line of the running demo and its table count those that began, also while they run."""
    rows = sorted((row for row in fed().rows if isinstance(row, TriggerRow)), key=lambda row: row.time_ms)
    last_begun = max(at for at, row in enumerate(rows) if row.type == "rebalance_triggered" and row.is_rebalance)
    for shown in (rows[: last_begun + 1], rows):
        picture, tally = Picture(), Tally(shards=1)
        picture.apply(topic_rows(*shown), now_ms=UNTIL_MS)
        tally.take(topic_rows(*shown), UNTIL_MS)
        on_page = sum(group.rebalances for group in list_rebalances(picture).groups)
        assert on_page == tally.rebalances == judged(fed().rows).begun


@pytest.mark.parametrize("expired", [True, False])
def test_a_row_that_is_not_there_is_missed(expired: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """An expiration or a rebalance that the log gives and nobody wrote is named; before its time it is none."""
    gone = next(row for row in fed().rows if of_classic(row, expired=expired))
    rest = [row for row in fed().rows if row is not gone]
    found = judged(rest)
    topic = AuditedTopic.EXPIRATIONS if expired else AuditedTopic.TRIGGERS
    written = found.expired if expired else found.triggers
    assert (found.expected(topic) - written, found.false, found.report.ok) == (1, 0, False)
    assert found.report.findings[0].group_id == gone.group_id
    time_ms = gone.deadline_ms if isinstance(gone, ExpirationRow) else gone.time_ms
    assert judged([row for row in rest if row.detected_ms < time_ms], until_ms=time_ms - 1).report.ok


@pytest.mark.parametrize("expired", [True, False])
def test_a_row_that_the_log_does_not_give_is_false(expired: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A row with another id than any that is derived is false, and so is one that says something else of itself."""
    one = next(row for row in fed().rows if of_classic(row, expired=expired))
    forged = msgspec.structs.replace(one, id="0" * 32)
    wrong = msgspec.structs.replace(one, shard=one.shard, member_id="x") if expired else None
    wrong = wrong or msgspec.structs.replace(one, member_count=99)
    for rows in ([*fed().rows, forged], [wrong if row is one else row for row in fed().rows]):
        found = judged(rows)
        assert (found.false, found.report.ok) == (1, False)
        assert found.report.findings[0].detail


def test_a_row_that_came_twice_is_allowed() -> None:
    """At least once is what is promised: a repeated row with its id changes no figure."""
    once, twice = judged(fed().rows), judged([*fed().rows, *fed().rows])
    assert (twice.report.ok, twice.report.repeated) == (True, len(fed().rows))
    assert (twice.expired, twice.triggers, twice.begun) == (once.expired, once.triggers, once.begun)


def test_members_killed_beyond_the_log_are_told() -> None:
    """The truth and the log must be of one run: a last record that is not in the log is counted."""
    last = fed().records[0]
    line = LifeLine(
        turn=Turn.KILLED,
        group_id="g",
        member_id="m",
        session_timeout_ms=6_000,
        at_ms=0,
        last_beat_ms=last.append_ms,
        partition=last.partition,
        offset=last.offset,
    )
    other = msgspec.structs.replace(line, last_beat_ms=last.append_ms + 1)
    found = judged(fed().rows, line, other)
    assert (found.killed, found.unread) == (2, 1)
