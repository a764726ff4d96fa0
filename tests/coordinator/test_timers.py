"""The timers of one group: the earliest is found, ties have an order, and re-arming is lazy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.engine.rules.java_map import bucket_of, in_map_order
from heartwheel.engine.rules.model import NEVER, Group, GroupKind, Member, TimerKind
from heartwheel.engine.rules.timers import GroupTimer, Timers


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


def _classic(*armed: tuple[str, int], table_size: int = 16, timer: TimerKind = TimerKind.SESSION) -> Group:
    """Make a classic group whose members' timers, armed at the moments given, are all due at 5."""
    group = Group("g", kind=GroupKind.CLASSIC, table_size=table_size)
    for seq, (member_id, armed_ms) in enumerate(armed):
        member = Member(member_id, seq, deadline_ms=5, timer=timer, timer_ms=5 - armed_ms)
        group.members[member_id] = member
    return group


def _arm_all(group: Group, *armed_ms: int) -> None:
    group.join_armed_ms, group.sync_armed_ms, group.store_armed_ms = armed_ms
    group.join_deadline_ms = group.sync_deadline_ms = group.store_deadline_ms = group.forget_deadline_ms = 5


def _names(group: Group) -> list[str]:
    return [name for _, name in _pop_all(Timers(group), 5)]


def test_equal_deadlines_fire_in_the_order_of_arming() -> None:
    """What was armed first fires first, be it the group's or a member's; the group is forgotten last."""
    group = _classic(("m0", 4), ("m1", 1))
    _arm_all(group, 0, 2, 3)
    assert _names(group) == ["join", "m1", "sync", "store", "m0", "forget"]


def test_members_armed_with_the_groups_timer_fire_before_it() -> None:
    """`completeClassicGroupJoin` arms the sessions and then calls `schedulePendingSync`: in one ms members go first."""
    group = _classic(("m0", 2), ("m1", 2))
    _arm_all(group, 2, 2, 2)
    assert _names(group) == ["m0", "m1", "join", "sync", "store", "forget"]


def test_members_armed_together_fire_in_the_order_of_javas_map() -> None:
    """Sessions that one completed join phase armed end in the order of the map that it walked, not of the joins."""
    assert _names(_classic(("m1", 0), ("m16", 0), ("m0", 0))) == in_map_order(["m1", "m16", "m0"], 16)
    assert _names(_classic(("m1", 0), ("m16", 0), ("m0", 0), table_size=32)) == in_map_order(["m1", "m16", "m0"], 32)


def test_table_that_grows_later_changes_no_order() -> None:
    """The order is that of the map when the sessions were armed, though it has grown by joins since."""
    group = _classic(("m1", 0), ("m16", 0), ("m0", 0), table_size=64)
    group.armed_table_size = 16
    assert _names(group) == in_map_order(["m1", "m16", "m0"], 16)


def test_first_joins_fire_in_the_order_of_the_requests() -> None:
    """Each new or pending member's timer is armed by its own request, so no map has a say."""
    for timer in (TimerKind.NEW_MEMBER, TimerKind.PENDING):
        assert _names(_classic(("m1", 0), ("m16", 0), ("m0", 0), timer=timer)) == ["m1", "m16", "m0"]


@pytest.mark.parametrize("kind", [GroupKind.PRESENCE, GroupKind.LOADED])
def test_other_groups_have_no_order_of_kafka(kind: GroupKind) -> None:
    """Members of a presence or loaded group end in the order in which they came, whenever they were armed."""
    group = _classic(("m1", 3), ("m16", 0), ("m0", 2))
    group.kind = kind
    assert _names(group) == ["m1", "m16", "m0"]


def test_order_follows_a_group_that_becomes_classic() -> None:
    """Entries that were filed by one order are filed again when the group changes its kind or its table."""
    group = _classic(("m1", 0), ("m16", 0), ("m0", 0))
    group.kind = GroupKind.LOADED
    timers = Timers(group)
    assert timers.next_deadline_ms() == 5
    group.kind = GroupKind.CLASSIC
    assert [name for _, name in _pop_all(timers, 5)] == in_map_order(["m1", "m16", "m0"], 16)


def test_no_id_is_hashed_without_a_tie(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of Java's map is only asked for members that fall due together."""
    monkeypatch.setattr("heartwheel.engine.rules.timers.bucket_of", _not_asked)
    group = _classic(("m0", 0), ("m1", 1), ("m2", 2))
    assert _names(group) == ["m0", "m1", "m2"]


def _not_asked(member_id: str, table_size: int) -> int:
    raise AssertionError(f"{member_id} was hashed for a table of {table_size}")


def test_a_timer_is_due_at_its_deadline_and_not_before() -> None:
    """The interval is half-open: not due while now < deadline."""
    timers = Timers(_group(10))
    assert not timers.is_due(9)
    assert timers.pop_due(9) is None
    assert timers.is_due(10)
    assert timers.pop_due(10) is not None
    assert timers.next_deadline_ms() == NEVER


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


@given(_steps, st.sampled_from([GroupKind.CLASSIC, GroupKind.PRESENCE]))
def test_timers_agree_with_a_plain_search(steps: list[tuple[str, int, int]], kind: GroupKind) -> None:
    """However timers are armed, moved and removed, the next is the one that a search through all would find."""
    group = _group(*[NEVER] * 5)
    group.kind, group.table_size = kind, 16
    timers = Timers(group)
    now = 0
    for action, index, length in steps:
        member = group.members.get(f"m{index}")
        if action == "pop":
            now += length
            due = sorted((m for m in group.members.values() if m.deadline_ms <= now), key=lambda m: _place(m, kind))
            expected = [(m.deadline_ms, m.member_id) for m in due]
            assert _pop_all(timers, now) == expected
        elif member is not None:
            _change(timers, group, member, action, now, length)
        assert timers.next_deadline_ms() == min((m.deadline_ms for m in group.members.values()), default=NEVER)


def _place(member: Member, kind: GroupKind) -> tuple[int, ...]:
    if kind is not GroupKind.CLASSIC:
        return member.deadline_ms, member.seq
    armed_ms = member.deadline_ms - member.timer_ms
    return member.deadline_ms, armed_ms, bucket_of(member.member_id, 16), member.seq


def _change(timers: Timers, group: Group, member: Member, action: str, now: int, length: int) -> None:
    if action == "arm":
        timers.arm(member, now, length, TimerKind.SESSION)
    elif action == "disarm":
        timers.disarm(member)
    else:
        del group.members[member.member_id]
