"""Groups whose members joined before anybody listened, by a source that knows what the coordinator answers."""

from __future__ import annotations

import random

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, GroupState
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdicts import Kind, Verdict
from support.answered_world import STEP_MS, T0, World, lived_world

Expired = tuple[str, str, int]


class Reader:
    """The rules, as they follow a group from some moment on."""

    def __init__(self, world: World, start_ms: int, *, broker_log: bool) -> None:
        self.verdicts: list[Verdict] = []
        self.machine = GroupMachine(Group("g"), world.config, self.verdicts.append)
        for at_ms, event in world.since(start_ms, broker_log=broker_log):
            self.machine.apply(event, at_ms)
        self.machine.advance(world.now_ms)

    def expired(self) -> set[Expired]:
        """Return who was expired, why, and when."""
        return expired_of(self.verdicts)


def expired_of(verdicts: list[Verdict], since_ms: int = 0) -> set[Expired]:
    """Return the expiries among verdicts since a moment."""
    return {
        (verdict.member_id or "", verdict.expiry_reason, verdict.time_ms)
        for verdict in verdicts
        if verdict.expiry_reason is not None and verdict.time_ms >= since_ms
    }


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("broker_log", [False, True])
def test_p1_verdicts_on_the_rest_of_a_log_are_right_or_absent(seed: int, broker_log: bool) -> None:  # noqa: FBT001
    """Wherever a tap begins, it expires whom the coordinator expired, then and for that cause, and nobody else.

    The group ends where the coordinator has it; and with the coordinator's own log no member that was heard is missed.
    """
    world = lived_world(seed)
    cuts = random.Random(seed)
    for _ in range(8):
        start_ms = cuts.randrange(T0, world.now_ms - 26_000)
        reader = Reader(world, start_ms, broker_log=broker_log)
        truth, group = expired_of(world.verdicts, start_ms), reader.machine.group
        assert not _without(reader.expired(), truth), (seed, start_ms - T0)
        if world.living:
            assert (group.state, group.generation) == (world.group.state, world.group.generation), (seed, start_ms - T0)
            assert {client.member_id for client in world.living} <= group.members.keys()
        if broker_log:
            lines = world.since(start_ms, broker_log=False)
            heard = {event.member_id for _, event in lines if event.type is EventType.HEARTBEAT}
            missed = _without({each for each in truth if each[0] in heard}, reader.expired())
            assert not missed, (seed, start_ms - T0)


def _without(some: set[Expired], others: set[Expired]) -> set[Expired]:
    """Return what is in no other set: the end of a join phase is known by the first request after it, a step later."""
    return {
        (member_id, reason, at_ms)
        for member_id, reason, at_ms in some
        if not any((member_id, reason) == other[:2] and abs(at_ms - other[2]) <= STEP_MS for other in others)
    }


def test_p1_accepted_heartbeat_ends_a_rebalance_that_is_none() -> None:
    """A member seemed to leave, and Kafka knew nothing of it: who beats on is in a Stable group, as Kafka says."""
    verdicts: list[Verdict] = []
    group = Group("g")
    machine = GroupMachine(group, CoordinatorConfig(), verdicts.append)
    for member_id in ("a", "b"):
        joins = Event(group_id="g", type=EventType.JOIN, assigned_member_id=member_id, api_version=3,
                      session_timeout_ms=6_000, rebalance_timeout_ms=20_000, protocol_type="consumer",
                      protocols=(Protocol("range"),))  # fmt: skip
        machine.apply(joins, T0)
    machine.advance(T0 + 6_000)
    machine.apply(Event(group_id="g", type=EventType.SYNC, member_id="a", generation_id=1, error_code=0), T0 + 6_000)
    machine.apply(Event(group_id="g", type=EventType.LEAVE, member_id="a"), T0 + 7_000)
    assert group.state is GroupState.PREPARING_REBALANCE
    for at_ms in range(7_500, 60_000, 500):
        machine.apply(Event(group_id="g", member_id="b", generation_id=1, error_code=0), T0 + at_ms)
    assert (group.state, group.generation, list(group.members)) == (GroupState.STABLE, 1, ["b"])
    assert not any(verdict.expiry_reason for verdict in verdicts)


@pytest.mark.parametrize("generation", [1, 2, 4, 9])
def test_group_that_seemed_empty_is_where_its_members_are_accepted(generation: int) -> None:
    """Whatever was believed of a group: a member whose heartbeat Kafka accepts is in it, at the generation it names."""
    verdicts: list[Verdict] = []
    group = Group("g", kind=GroupKind.CLASSIC, generation=4, confirmed=True)
    machine = GroupMachine(group, CoordinatorConfig(), verdicts.append)
    machine.apply(Event(group_id="g", member_id="a", generation_id=generation, error_code=0), T0)
    assert (group.state, group.generation, list(group.members)) == (GroupState.STABLE, generation, ["a"])
    assert [(each.kind, each.member_count) for each in verdicts] == [(Kind.REBALANCE_COMPLETED, 1)]
    assert machine.next_deadline_ms() == NEVER


def _joins(member_id: str, generation: int) -> Event:
    return Event(group_id="g", type=EventType.JOIN, member_id=member_id, generation_id=generation, error_code=0,
                 session_timeout_ms=6_000, rebalance_timeout_ms=20_000, protocol_type="consumer",
                 protocols=(Protocol("range"),), leader="a")  # fmt: skip


def _asks(kind: EventType, member_id: str, generation: int, code: int = 0) -> Event:
    return Event(group_id="g", type=kind, member_id=member_id, generation_id=generation, error_code=code)


def test_p1_member_that_waits_for_an_unseen_static_one_is_not_expired() -> None:
    """A static member is silent since before the log: Kafka's second join phase waits for its session to end."""
    verdicts: list[Verdict] = []
    group = Group("g")
    machine = GroupMachine(group, CoordinatorConfig(), verdicts.append)
    events = [
        (0, _asks(EventType.HEARTBEAT, "a", 4)),
        (1_000, _asks(EventType.HEARTBEAT, "a", 4, 27)),
        (1_010, _joins("a", 5)),
        (8_000, _asks(EventType.SYNC, "a", 5)),
        (8_500, _asks(EventType.HEARTBEAT, "a", 5)),
        (9_000, _asks(EventType.HEARTBEAT, "a", 5, 27)),
        (9_010, _joins("a", 6)),
        # Nobody else is known; the static one's session of 45 s has ended before Kafka answers.
        (40_000, _asks(EventType.SYNC, "a", 6)),
        (40_500, _asks(EventType.HEARTBEAT, "a", 6)),
    ]
    for at_ms, event in events:
        machine.apply(event, T0 + at_ms)
        assert not any(each.expiry_reason for each in verdicts), at_ms
    assert (group.state, group.generation, list(group.members)) == (GroupState.STABLE, 6, ["a"])
    machine.advance(T0 + 60_000)
    assert expired_of(verdicts) == {("a", "session_timeout", T0 + 46_500)}


def test_group_is_known_whole_when_the_longest_session_is_over() -> None:
    """Then every static member must have been heard: a join phase ends by the rules again."""
    verdicts: list[Verdict] = []
    config = CoordinatorConfig(group_max_session_timeout_ms=10_000)
    group = Group("g")
    machine = GroupMachine(group, config, verdicts.append)
    machine.apply(_asks(EventType.HEARTBEAT, "a", 4), T0)
    machine.apply(_joins("a", 5), T0 + 1_000)
    machine.apply(_asks(EventType.SYNC, "a", 5), T0 + 1_100)
    for at_ms in range(2_000, 12_000, 1_000):
        machine.apply(_asks(EventType.HEARTBEAT, "a", 5), T0 + at_ms)
    machine.apply(_joins("a", 6), T0 + 12_000)
    machine.apply(_asks(EventType.SYNC, "a", 6), T0 + 12_100)
    machine.apply(_joins("a", 7), T0 + 13_000)
    assert (group.state, group.generation) == (GroupState.COMPLETING_REBALANCE, 7)


def _restarted() -> tuple[GroupMachine, list[Verdict]]:
    """Play a group of a, b and c whose sessions of 6 s began anew at 10 s here, and 100 ms sooner at its coordinator.

    Then c stays silent, and the others join again, so that the next generation waits for c alone.
    """
    verdicts: list[Verdict] = []
    machine = GroupMachine(Group("g"), CoordinatorConfig(), verdicts.append)
    everybody = ("a", "b", "c")
    for name in everybody:
        machine.apply(msgspec.structs.replace(_joins("", 1), assigned_member_id=name, api_version=3), T0)
    for name in everybody:
        machine.apply(_asks(EventType.SYNC, name, 1), T0 + 3_100)
    for name in everybody:
        machine.apply(_asks(EventType.HEARTBEAT, name, 1), T0 + 4_000)
    machine.renew(T0 + 4_500, T0 + 10_000)
    for name in ("a", "b"):
        machine.apply(_joins(name, 2), T0 + 10_200)
    assert (machine.group.state, list(machine.group.members)) == (GroupState.PREPARING_REBALANCE, list(everybody))
    return machine, verdicts


def test_p3_member_whose_session_ended_sooner_at_the_coordinator_is_not_missed() -> None:
    """The phase ends without c, before its session does here; its timer runs on, so it was c's session that ended."""
    machine, verdicts = _restarted()
    machine.apply(_asks(EventType.SYNC, "a", 2), T0 + 15_905)
    assert expired_of(verdicts) == {("c", "session_timeout", T0 + 15_905)}
    assert (machine.group.generation, list(machine.group.members)) == (2, ["a", "b"])
    machine.advance(T0 + 21_904)
    assert len(expired_of(verdicts)) == 1


def test_p3_coordinators_own_log_tells_when_that_was() -> None:
    """Its word counts for a session that is known, too, if that ends about then."""
    machine, verdicts = _restarted()
    machine.apply(Event(group_id="g", type=EventType.EXPIRED, member_id="c"), T0 + 15_901)
    machine.apply(_asks(EventType.SYNC, "a", 2), T0 + 15_905)
    assert expired_of(verdicts) == {("c", "session_timeout", T0 + 15_901)}


def test_p1_own_log_ends_no_session_that_is_far_from_its_end() -> None:
    """So nobody who beats can be expired by a line of that log, whoever wrote it."""
    machine, verdicts = _restarted()
    machine.apply(_asks(EventType.HEARTBEAT, "c", 1, 27), T0 + 10_300)
    machine.apply(Event(group_id="g", type=EventType.EXPIRED, member_id="c"), T0 + 14_900)
    assert "c" in machine.group.members
    assert not expired_of(verdicts)


def test_p3_own_log_ends_a_session_that_only_a_gap_has_extended() -> None:
    """The source missed a time, and the coordinator did not: the session of a member that is silent since is over."""
    machine, verdicts = _restarted()
    machine.apply(Event(group_id="g", type=EventType.EXPIRED, member_id="c"), T0 + 10_300)
    machine.apply(_asks(EventType.SYNC, "a", 2), T0 + 10_305)
    assert expired_of(verdicts) == {("c", "session_timeout", T0 + 10_300)}


def test_p3_own_log_ends_a_session_that_began_before_a_request_showed_it() -> None:
    """The joins of a and b are answered at 1 s, and b stops; a starved client syncs 3 s later, which is the first sign.

    So the session of b ends 3 s sooner at the coordinator than here.
    """
    verdicts: list[Verdict] = []
    machine = GroupMachine(Group("g"), CoordinatorConfig(), verdicts.append)
    for name in ("a", "b"):
        machine.apply(_asks(EventType.HEARTBEAT, name, 4), T0)
    for name in ("a", "b"):
        machine.apply(_joins(name, 5), T0 + 1_000)
    machine.apply(_asks(EventType.SYNC, "a", 5), T0 + 4_000)
    machine.apply(_asks(EventType.HEARTBEAT, "a", 5), T0 + 6_000)
    machine.apply(Event(group_id="g", type=EventType.EXPIRED, member_id="b"), T0 + 7_000)
    machine.apply(_joins("a", 6), T0 + 7_100)
    machine.apply(_asks(EventType.SYNC, "a", 6), T0 + 7_110)
    assert expired_of(verdicts) == {("b", "session_timeout", T0 + 7_000)}


@pytest.mark.parametrize(
    ("shown_ms", "gap_end_ms"),
    [
        pytest.param(14_900, 0, id="its session is far from its end"),
        pytest.param(15_905, 11_000, id="the phase began in what was missed"),
    ],
)
def test_p1_member_that_may_be_out_for_another_cause_is_not_called_expired(shown_ms: int, gap_end_ms: int) -> None:
    """It may have left unheard; then it is a member no more, and no verdict says why."""
    machine, verdicts = _restarted()
    if gap_end_ms:
        machine.renew(T0 + 10_300, T0 + gap_end_ms)
        machine.group.members["c"].deadline_ms = T0 + 16_000
    machine.apply(_asks(EventType.SYNC, "a", 2), T0 + shown_ms)
    assert list(machine.group.members) == ["a", "b"]
    assert not expired_of(verdicts)


def test_p1_member_that_may_have_been_late_to_join_is_not_called_expired() -> None:
    """The phase's own timer ends about then."""
    machine, verdicts = _restarted()
    machine.group.join_deadline_ms = T0 + 16_500
    machine.apply(_asks(EventType.SYNC, "a", 2), T0 + 15_905)
    assert list(machine.group.members) == ["a", "b"]
    assert not expired_of(verdicts)
