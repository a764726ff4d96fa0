"""The timers of one group: the earliest is found, ties have an order, and re-arming is lazy."""

from __future__ import annotations

import heapq

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.coordinator.model import NEVER, Group, Member, TimerKind
from heartwheel.coordinator.timers import GroupTimer, Timers


def _group(*deadlines: int) -> Group:
    group = Group("g")
    group.members = {f"m{i}": Member(f"m{i}", i, deadline_ms=deadline) for i, deadline in enumerate(deadlines)}
    return group


def _pop_all(timers: Timers, clock_ms: int) -> list[tuple[int, str]]:
    popped = []
    while (due := timers.pop_due(clock_ms)) is not None:
        deadline, owner = due
        popped.append((deadline, owner.member_id if isinstance(owner, Member) else owner.value))
    return popped


def test_equal_deadlines_fire_in_the_stated_order() -> None:
    """Join, sync and store come before members, members in join order, and forgetting comes last."""
    group = _group(5, 5)
    group.join_deadline_ms = group.sync_deadline_ms = group.store_deadline_ms = group.forget_deadline_ms = 5
    assert [name for _, name in _pop_all(Timers(group), 5)] == ["join", "sync", "store", "m0", "m1", "forget"]


def test_a_timer_is_due_at_its_deadline_and_not_before() -> None:
    """The interval is half-open: not due while now < deadline."""
    timers = Timers(_group(10))
    assert not timers.is_due(9)
    assert timers.pop_due(9) is None
    assert timers.is_due(10)
    assert timers.pop_due(10) is not None
    assert timers.next_deadline_ms() == NEVER


def test_earlier_deadline_replaces_a_later_one() -> None:
    """A timer that is re-armed for an earlier moment fires then, once."""
    group = _group(100)
    timers = Timers(group)
    timers.arm(group.members["m0"], 0, 20, TimerKind.SESSION)
    assert _pop_all(timers, 1000) == [(20, "m0")]


def test_heartbeats_cost_no_heap_operation() -> None:
    """A deadline that only moves on is not filed again until its old entry comes up."""
    group = _group(10, 500)
    timers = Timers(group)
    for now in range(1, 9):
        timers.arm(group.members["m0"], now, 400, TimerKind.SESSION)
    assert len(timers._heap) == 2
    assert timers.next_deadline_ms() == 408


def test_removed_and_disarmed_members_do_not_fire() -> None:
    """The entry of a member that is gone, or of one that came back under the same id, is dropped."""
    group = _group(10, 20, 30)
    timers = Timers(group)
    del group.members["m0"]
    timers.disarm(group.members["m1"])
    group.members["m2"] = Member("m2", 7)
    timers.arm(group.members["m2"], 0, 50, TimerKind.SESSION)
    assert _pop_all(timers, 100) == [(50, "m2")]


@pytest.mark.parametrize("timer", GroupTimer)
def test_group_timer_is_disarmed_when_it_fires(timer: GroupTimer) -> None:
    """A timer that fired is armed again only by the rule that it runs."""
    group = Group("g")
    setattr(group, f"{timer.value}_deadline_ms", 5)
    timers = Timers(group)
    assert timers.pop_due(5) == (5, timer)
    assert timers.next_deadline_ms() == NEVER


_steps = st.lists(st.tuples(st.sampled_from(["arm", "disarm", "remove", "pop"]), st.integers(0, 4), st.integers(0, 50)))


@given(_steps)
def test_timers_agree_with_a_plain_search(steps: list[tuple[str, int, int]]) -> None:
    """However timers are armed, moved and removed, the next is the one that a search through all would find."""
    group = _group(*[NEVER] * 5)
    timers = Timers(group)
    now = 0
    for action, index, length in steps:
        member = group.members.get(f"m{index}")
        if action == "pop":
            now += length
            expected = sorted((m.deadline_ms, m.member_id) for m in group.members.values() if m.deadline_ms <= now)
            assert _pop_all(timers, now) == expected
        elif member is not None:
            _change(timers, group, member, action, now, length)
        assert timers.next_deadline_ms() == min((m.deadline_ms for m in group.members.values()), default=NEVER)


def _change(timers: Timers, group: Group, member: Member, action: str, now: int, length: int) -> None:
    if action == "arm":
        timers.arm(member, now, length, TimerKind.SESSION)
    elif action == "disarm":
        timers.disarm(member)
    else:
        del group.members[member.member_id]


def test_heap_stays_small_under_many_heartbeats() -> None:
    """Ten thousand members that beat again and again keep one entry each."""
    group = _group(*range(1, 10_001))
    timers = Timers(group)
    for now in range(0, 50_000, 10_000):
        for member in group.members.values():
            timers.arm(member, now, 20_000, TimerKind.SESSION)
    assert len(timers._heap) == 10_000
    assert heapq.nsmallest(1, timers._heap)[0][0] == 1
    assert timers.next_deadline_ms() == 60_000
