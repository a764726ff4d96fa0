"""What holds for every log: the laws that the shard and the vectorised path build on."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group_logs import CONFIG, events, logs
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import NEVER, Group, GroupState, TimerKind
from heartwheel.engine.rules.roster import Roster
from heartwheel.wire.event_codec import fingerprint
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Kind, Verdict
from support.heartbeat_logs import EXAMPLES

Log = list[tuple[int, Event]]


def _fresh() -> tuple[GroupMachine, list[Verdict]]:
    verdicts: list[Verdict] = []
    return GroupMachine(Group("g"), CONFIG, verdicts.append), verdicts


def _copy(group: Group) -> Group:
    return msgspec.json.decode(msgspec.json.encode(group), type=Group)


def _run(log: Log) -> tuple[Group, list[Verdict]]:
    machine, verdicts = _fresh()
    now = 0
    for wait, event in log:
        now += wait
        machine.apply(event, now, fingerprint(event) if event.type is EventType.HEARTBEAT else 0)
    machine.advance(now + 10_000)
    return machine.group, verdicts


@settings(max_examples=3 * EXAMPLES)
@given(log=logs(), data=st.data())
def test_verdicts_do_not_depend_on_how_the_log_is_cut(log: Log, data: st.DataObject) -> None:
    """Clocks that advance in between, and restarts from the written state, change neither verdicts nor state."""
    whole, expected = _run(log)
    machine, verdicts = _fresh()
    now = 0
    for wait, event in log:
        for cut in sorted(data.draw(st.lists(st.integers(0, wait), max_size=2))):
            machine.advance(now + cut)
        if data.draw(st.booleans()):
            machine = GroupMachine(_copy(machine.group), CONFIG, verdicts.append)
        now += wait
        machine.apply(event, now, fingerprint(event) if event.type is EventType.HEARTBEAT else 0)
    for step in (now + 1, now + 999, now + 10_000):
        machine.advance(step)
    assert verdicts == expected
    assert machine.group == whole


@settings(max_examples=3 * EXAMPLES)
@given(log=logs(), wait=st.integers(0, 3_000))
def test_fingerprint_promises_a_plain_reset(log: Log, wait: int) -> None:
    """A heartbeat whose fingerprint its member holds does nothing but move the deadline, at any later moment."""
    machine, _ = _fresh()
    sent: dict[int, Event] = {}
    now = 0
    for pause, event in log:
        now += pause
        mark = fingerprint(event) if event.type is EventType.HEARTBEAT else 0
        sent[mark] = event
        machine.apply(event, now, mark)
        later = min(now + wait, machine.next_deadline_ms() - 1)
        for member in machine.group.members.values():
            if member.fingerprint and later >= now:
                _check_plain_reset(machine.group, member.member_id, sent[member.fingerprint], later)


def _check_plain_reset(group: Group, member_id: str, event: Event, later: int) -> None:
    by_rules, plain = _copy(group), _copy(group)
    said: list[Verdict] = []
    GroupMachine(by_rules, CONFIG, said.append).apply(event, later, fingerprint(event))
    plain.last_event_ms = plain.members[member_id].last_seen_ms = later
    plain.members[member_id].deadline_ms = later + plain.members[member_id].session_timeout_ms
    assert not said
    assert by_rules == plain


@settings(max_examples=2 * EXAMPLES)
@given(log=logs())
def test_accepted_heartbeats_leave_their_fingerprint(log: Log) -> None:
    """An accepted heartbeat is remembered, so that a steady member stays on the vectorised path."""
    machine, _ = _fresh()
    now = 0
    for wait, event in log:
        now += wait
        if event.type is EventType.HEARTBEAT:
            answer = machine.apply(event, now, 77)
            member = machine.group.members.get(event.member_id)
            if answer in ("NONE", "REBALANCE_IN_PROGRESS"):
                assert member is not None
                own = event.group_instance_id in (None, member.group_instance_id)
                assert member.fingerprint == (77 if own else 0)
        else:
            machine.apply(event, now)


@settings(max_examples=2 * EXAMPLES)
@given(log=logs())
def test_bookkeeping_agrees_with_the_state(log: Log) -> None:
    """What is counted on the way is what a fresh count of the state gives, and the state is a legal one."""
    machine, _ = _fresh()
    now = 0
    for wait, event in log:
        now += wait
        machine.apply(event, now)
        group, roster = machine.group, machine._ctx.roster
        assert vars(roster).keys() == vars(Roster(group)).keys()
        for name, counted in vars(Roster(group)).items():
            assert vars(roster)[name] == counted, name
        assert machine.next_deadline_ms() == GroupMachine(_copy(group), CONFIG, print).next_deadline_ms()
        _check_group(group)


def _check_group(group: Group) -> None:
    members = group.members.values()
    assert [m.seq for m in members] == sorted({m.seq for m in members})
    assert all(m.seq < group.next_seq and not m.pending for m in members)
    assert all(m.pending for m in group.pending.values())
    assert (group.state is not GroupState.EMPTY) or not group.members
    assert group.leader is None or group.leader in group.members
    assert group.state is GroupState.PREPARING_REBALANCE or group.join_deadline_ms == NEVER
    if group.state is GroupState.PREPARING_REBALANCE and not group.unloaded:
        assert group.join_deadline_ms != NEVER
    if group.state is GroupState.STABLE and not group.unloaded:
        assert all(m.deadline_ms != NEVER for m in members)
    for member in members:
        if member.fingerprint:
            assert (member.timer, member.timer_ms) == (TimerKind.SESSION, member.session_timeout_ms)


@settings(max_examples=3 * EXAMPLES)
@given(log=logs(moves=False))
def test_p4_expiry_comes_first_and_generations_strictly_increase(log: Log) -> None:
    """P4: per group an expiry comes before the rebalance that it triggers, and every new generation is a higher one.

    A coordinator that is loaded may go back to a generation that was never written down; that is Kafka's, and left out.
    """
    _, verdicts = _run(log)
    generation = last_ms = 0
    for index, verdict in enumerate(verdicts):
        assert verdict.time_ms >= last_ms
        if verdict.time_ms - last_ms >= CONFIG.empty_group_retention_ms:
            generation = 0  # the group was forgotten in between, this is another one
        last_ms = verdict.time_ms
        if verdict.kind in (Kind.REBALANCE_COMPLETED, Kind.GROUP_EMPTY):
            assert verdict.generation_id > generation
            generation = verdict.generation_id
        if verdict.kind is Kind.REBALANCE_STARTED and verdict.reason.startswith("removing member"):
            assert verdicts[index - 1].kind is Kind.MEMBER_EXPIRED
            assert verdicts[index - 1].time_ms == verdict.time_ms


@settings(max_examples=2 * EXAMPLES)
@given(log=logs())
def test_p1_nobody_expires_before_its_deadline(log: Log) -> None:
    """P1: whoever a session timer ends has been silent for at least that long."""
    _, verdicts = _run(log)
    for verdict in verdicts:
        if verdict.expiry_reason == "session_timeout":
            assert verdict.last_seen_ms is not None
            assert verdict.session_timeout_ms is not None
            assert verdict.time_ms >= verdict.last_seen_ms + verdict.session_timeout_ms


@given(log=logs(), late=events(), back=st.integers(1, 5_000))
def test_effective_time_never_goes_back(log: Log, late: Event, back: int) -> None:
    """An event with an earlier append time than the group's time counts as at the group's time, and is counted."""
    machine, verdicts = _fresh()
    now = 0
    for wait, event in log:
        now += wait
        machine.apply(event, now)
    seen = machine.group.last_event_ms
    machine.apply(late, seen - back)
    assert machine.clamped == 1
    assert all(verdict.time_ms <= max(seen, now) for verdict in verdicts)
    assert machine.group.last_event_ms in (seen, 0)


@given(log=logs())
def test_state_survives_being_written_down(log: Log) -> None:
    """The whole state is in the group's fields, and JSON keeps every one of them."""
    group, _ = _run(log)
    assert _copy(group) == group
