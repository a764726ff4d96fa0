"""Timers that end in one millisecond, as the audit reads Kafka's source: held by what Kafka decides, not by the engine.

The engine's rules are held to the same lists, here and in `tests/replay/test_answered_logs.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from audit.engine_runs import engine_run
from heartwheel.engine.replay.log import replay_log
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group as RulesGroup
from heartwheel.engine.rules.model import GroupState
from heartwheel.proof.audit import AuditConfig
from heartwheel.proof.audit.derived import Derived
from heartwheel.proof.audit.rules.groups import advance, apply
from heartwheel.proof.audit.rules.model import AuditedGroup
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Kind, Verdict
from support.tied_logs import (
    START_MS,
    TIES,
    Decided,
    adding,
    ask,
    derived_rows,
    expires,
    is_empty,
    join,
    line,
    lines_of,
    row_in_short,
    rows_of,
    stands,
)

Requests = Sequence[tuple[int, Event]]


def _audited(requests: Requests, end_ms: int) -> list[Decided]:
    """Run the audit's rules alone over the requests of one group."""
    group, config = AuditedGroup(requests[0][1].group_id), AuditConfig()
    said: list[Derived] = []
    for t_ms, event in requests:
        apply(group, event, START_MS + t_ms, config, said)
    advance(group, START_MS + end_ms, config, said)
    return derived_rows(said)


def _decided(requests: Requests, end_ms: int) -> list[Decided]:
    """Run the engine over them, through a shard."""
    lines = [line(t_ms, event) for t_ms, event in requests]
    return rows_of(replay_log(lines, CoordinatorConfig(), START_MS + end_ms))


def _requests_of(name: str) -> list[tuple[int, Event]]:
    return [(json.loads(text)["t_ms"] - START_MS, decode_event(text)) for text in lines_of(name)]


@pytest.mark.parametrize("name", TIES)
def test_ties_are_derived_as_kafka_decides_them(name: str) -> None:
    """Who, what, when and the words of timers that end together are Kafka's in the audit, too, by its own reading."""
    end_ms, expected = TIES[name]
    assert _audited(_requests_of(name), end_ms) == expected


TWO = [(0, join("g", "A", 30_000, 10_000)), (1, join("g", "B", 30_000, 10_000))]
"""Two members; the join phase ends at 6000, and who has not synced by 16000 is removed."""

SYNCED_TOO_LATE: list[Decided] = [
    (0, "rebalance_triggered", adding("A")),
    (6_000, "rebalance_completed", stands(1, 2)),
    (16_000, "sync_timeout", "B"),
    (16_000, "rebalance_triggered", "Removing [B] on pending sync request expiration"),
]


def test_sync_timer_ends_before_the_assignment_is_stored() -> None:
    """A time limit for syncs and the storing of the assignment that end together: the time limit comes first.

    `schedulePendingSync` armed `sync-g` when the join phase was complete, ten seconds before the leader sent its
    assignment. The append of the assignment completes when the high watermark passes it; its callback in
    `classicGroupSyncToClassicGroup` does nothing unless the group is still in CompletingRebalance at that generation.
    So `expirePendingSync` removes B, who never synced, and `prepareRebalance` sends the leader back to join
    (`resetAndPropagateAssignmentWithError`): the group is never Stable. Had the store come first, it would be, and the
    leader would go on as a member of generation 1.
    """
    decided: list[Verdict] = []
    machine = GroupMachine(RulesGroup("g"), CoordinatorConfig(), decided.append)
    for t_ms, event in TWO:
        machine.apply(event, START_MS + t_ms)
    machine.conditions.append_delay_ms = 10
    assert machine.apply(ask(EventType.SYNC, "g", machine.group.leader or "A", 1), START_MS + 15_990) == "PARKED"
    assert machine.group.store_deadline_ms == machine.group.sync_deadline_ms == START_MS + 16_000
    machine.advance(START_MS + 16_000)
    assert rows_of(decided) == SYNCED_TOO_LATE
    assert [verdict.kind for verdict in decided].count(Kind.ASSIGNMENT_RECEIVED) == 1
    assert machine.group.state is GroupState.PREPARING_REBALANCE
    assert machine.apply(ask(EventType.HEARTBEAT, "g", "A", 1), START_MS + 16_001) == "REBALANCE_IN_PROGRESS"


def test_sync_timer_ends_before_an_assignment_of_the_same_moment() -> None:
    """An assignment that arrives as the time limit ends finds the members without a sync removed.

    Without a log of its own to wait for, the live job and the audit store an assignment as it arrives. The timer
    `sync-g` was armed long before the request that arrives at its deadline, so its event is ahead in the partition's
    queue. The leader had synced before, so it stays; its second assignment is answered REBALANCE_IN_PROGRESS.
    """
    requests = [*TWO, (15_000, ask(EventType.SYNC, "g", "A", 1)), (16_000, ask(EventType.SYNC, "g", "A", 1))]
    for decided in (_audited(requests, 20_000), _decided(requests, 20_000)):
        assert decided == SYNCED_TOO_LATE


def _session_is_older(group: str) -> Requests:
    """Two members: A's session and the time limit for syncs were armed together, and end at 16000."""
    return [(0, join(group, "A", 10_000, 10_000)), (0, join(group, "B", 30_000, 10_000))]


def _join_timer_is_older(group: str) -> Requests:
    """A and B are Stable; C's join arms a time limit at 6000; B joins again, A beats at 6500: both end at 16000."""
    return [
        (0, join(group, "A", 9_500, 10_000)),
        (0, join(group, "B", 30_000, 10_000)),
        (6_000, ask(EventType.SYNC, group, "A", 1)),
        (6_000, ask(EventType.SYNC, group, "B", 1)),
        (6_000, join(group, "C", 30_000, 10_000)),
        (6_100, join(group, "B", 30_000, 10_000, first=False)),
        (6_500, ask(EventType.HEARTBEAT, group, "A", 1)),
    ]


def _all_end_together(group: str) -> Requests:
    """Four members whose sessions were armed by one completed join phase, and end at 16000."""
    return [(0, join(group, f"m{n}", 10_000, 60_000)) for n in (1, 16, 0, 2)]


def test_ties_of_several_groups_in_one_millisecond() -> None:
    """Groups of one coordinator whose timers all end in one millisecond are each judged as if they were alone.

    All groups of a partition share one `SystemTimer`, and its bucket of that millisecond holds the timers of all of
    them in the order of their arming, mixed. But each key names its group (`heartbeat-g-m`, `join-g`, `sync-g`), each
    operation looks up and changes only that group, and `timer.cancel` takes out a key of that group alone; so the order
    *within* each group decides, and taking the entries of the others out changes nothing. In `old` the session was
    armed with the time limit for syncs and before it (`completeClassicGroupJoin`, then `schedulePendingSync`): A
    expires, and its `prepareRebalance` cancels the time limit, so B lives. In `young` the time limit for joins
    (`prepareRebalance` at 6000) is older than A's session (its heartbeat at 6500), so A is removed as one that has not
    joined, and its timer cancelled. In `all` four sessions were armed walking through the `HashMap`: m16, m0, m1, m2.
    """
    asked = [*_session_is_older("old"), *_join_timer_is_older("young"), *_all_end_together("all")]
    expected: dict[str, list[Decided]] = {
        "old": [(16_000, "session_timeout", "A"), (16_000, "rebalance_triggered", expires("A"))],
        "young": [
            (16_000, "rebalance_timeout", "A"),
            (16_000, "rebalance_completed", stands(2, 2, "young")),
        ],
        "all": [
            (16_000, "session_timeout", "m16"),
            (16_000, "rebalance_triggered", expires("m16")),
            (16_000, "session_timeout", "m0"),
            (16_000, "session_timeout", "m1"),
            (16_000, "session_timeout", "m2"),
            (16_000, "group_empty", is_empty(2, "all")),
        ],
    }
    log = LogBuilder()
    for t_ms, event in sorted(asked, key=lambda request: request[0]):
        log.add(START_MS + t_ms, event)
    for cuts in ((), range(len(asked))):  # in one batch, and the state written down and read after each record
        run = engine_run(log, clock_ms=START_MS + 16_000, config=CoordinatorConfig(), cuts=cuts)
        for group, rows in expected.items():
            mine = [row_in_short(each.row) for each in run.written if each.row.group_id == group]
            assert [row for row in mine if row[0] == 16_000] == rows
    for group, rows in expected.items():
        said = _audited([request for request in asked if request[1].group_id == group], 16_000)
        assert [row for row in said if row[0] == 16_000] == rows


FORTY = [f"m{n}" for n in range(40)]
"""So many that Java's map of the members has 64 buckets: m16 is in bucket 19, m0 in 35; of 16 both are in bucket 3."""


def _forty_stand() -> list[tuple[int, Event]]:
    return [(0, join("g", who, 100_000, 10_000)) for who in FORTY]


def test_members_removed_at_the_join_are_named_as_kafka_copies_them() -> None:
    """Who has not joined again is named in the order of maps that were filled from the map of the members.

    `notYetRejoinedMembers` puts them into a new `HashMap` walking through `members`, and `completeClassicGroupJoin`
    collects the dynamic ones into a third. Two members are in one bucket of that one, and stand in it as they were put
    in: m16 before m0, though m0 joined first.
    """
    synced = [(6_000, ask(EventType.SYNC, "g", who, 1)) for who in FORTY]
    again = [join("g", who, 100_000, 10_000, first=False) for who in FORTY if who not in ("m0", "m16")]
    requests = [*_forty_stand(), *synced, (7_000, join("g", "z", 100_000, 10_000)), *((7_010, one) for one in again)]
    lines = [line(t_ms, event) for t_ms, event in requests]
    decided = replay_log(lines, CoordinatorConfig(), START_MS + 17_000)
    removed = [verdict for verdict in decided if verdict.kind is Kind.MEMBER_REMOVED_AT_JOIN]
    assert {v.reason for v in removed} == {"Group g removed dynamic members who haven't joined: [m16, m0]"}
    for rows in (rows_of(decided), _audited(requests, 17_000)):
        assert rows[-3:-1] == [(17_000, "rebalance_timeout", "m16"), (17_000, "rebalance_timeout", "m0")]


def test_members_removed_at_the_sync_are_named_as_kafka_copies_them() -> None:
    """`expirePendingSync` goes through a copy of the set of those whose sync is waited for, filled in its order."""
    synced = [(6_000, ask(EventType.SYNC, "g", who, 1)) for who in FORTY if who not in ("m0", "m16")]
    requests = [*_forty_stand(), *synced]
    for decided in (_decided(requests, 16_000), _audited(requests, 16_000)):
        assert decided[-1] == (16_000, "rebalance_triggered", "Removing [m16, m0] on pending sync request expiration")


def test_audit_finds_ties_that_were_told_in_another_order() -> None:
    """A row of a tie that Kafka would not have decided is found: the audit does not go by the engine's order."""
    log = LogBuilder()
    for t_ms, event in _session_is_older("g"):
        log.add(START_MS + t_ms, event)
    run = engine_run(log, clock_ms=START_MS + 16_000, config=CoordinatorConfig())
    assert run.audit().faults == {}
    run.find(lambda row: row.reason == "session_timeout").row.reason = "sync_timeout"
    assert run.audit().faults != {}
