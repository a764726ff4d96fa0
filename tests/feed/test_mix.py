"""The mix shows what it is for within a minute, and nothing that it is not for."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import msgspec
import pytest

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.proof.members.members import group_name
from heartwheel.proof.members.mix import MixedMembers, Role, mixed_steps, role_of
from heartwheel.proof.members.schedule import Action, FeedPlan
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import EventType
from heartwheel.wire.verdicts import ExpiryReason, Kind, Verdict

PLAN = FeedPlan(
    groups=20,
    members_per_group=10,
    heartbeat_interval_ms=2_000,
    session_timeout_ms=6_000,
    duration_ms=60_000,
    kill_rate=0.3,
    return_share=0.9,
    protocol="mix",
)
STAMP_DELAY_MS = 30
STORM = 5


class Fed:
    """Run a plan of the mix against the rules, every record stamped a moment after it was sent."""

    def __init__(self, plan: FeedPlan) -> None:
        self.verdicts: dict[str, list[Verdict]] = defaultdict(list)
        self.answers: Counter[tuple[EventType, Answer]] = Counter()
        self.states: dict[str, list[str]] = defaultdict(list)
        names = [group_name(plan, number) for number in range(plan.groups)]
        machines = {name: GroupMachine(Group(name), CoordinatorConfig(), self.verdicts[name].append) for name in names}
        members = MixedMembers(plan)
        for step in mixed_steps(plan):
            if step.action is not Action.GARBAGE:
                for sent in list(members.act(step.member, step.action, step.at_ms)):
                    event, append_ms = decode_event(sent.value), round(step.at_ms) + STAMP_DELAY_MS
                    self.answers[event.type, machines[event.group_id].apply(event, append_ms)] += 1
                    members.landed(sent, append_ms, append_ms + STAMP_DELAY_MS)
        for name, machine in machines.items():
            machine.advance((plan.duration_ms or 0) + STAMP_DELAY_MS)
            self.states[name].append(machine.group.state.value)


@cache
def fed(seed: int = 1, duration_ms: int = 60_000) -> Fed:
    """Feed the plan once a seed and length."""
    return Fed(msgspec.structs.replace(PLAN, seed=seed, duration_ms=duration_ms))


def named(role: Role) -> str:
    """Name the one group that shows something by a script."""
    (number,) = (number for number in range(PLAN.groups) if role_of(PLAN, number) is role)
    return group_name(PLAN, number)


def begun(verdicts: list[Verdict]) -> list[Verdict]:
    """Take the rebalances that began in a group."""
    return [each for each in verdicts if each.kind is Kind.REBALANCE_STARTED]


def test_most_groups_are_classic() -> None:
    """Of twenty groups five only send heartbeats, four have a script, and the others are classic and calm."""
    roles = Counter(role_of(PLAN, number) for number in range(PLAN.groups))
    scripted = (Role.STORM, Role.BLOCKED, Role.STATIC, Role.POLL_TIMEOUT)
    assert roles == {Role.CLASSIC: 11, Role.PRESENCE: 5} | dict.fromkeys(scripted, 1)


@pytest.mark.parametrize(("groups", "members"), [(1, 1), (2, 1), (3, 4), (6, 10), (20, 3)])
def test_small_mixes_have_no_scripts(groups: int, members: int) -> None:
    """Whoever asks for few groups or members gets classic and presence groups, and at least one classic one."""
    plan = msgspec.structs.replace(PLAN, groups=groups, members_per_group=members)
    roles = [role_of(plan, number) for number in range(groups)]
    assert set(roles) <= {Role.CLASSIC, Role.PRESENCE}
    assert roles[0] is Role.CLASSIC
    assert (Role.PRESENCE in roles) is (groups > 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_rules_refuse_nothing_but_a_stale_heartbeat(seed: int) -> None:
    """Members of all protocols say only what the coordinator takes; who was expired finds that out by a heartbeat."""
    bad = {
        each: count
        for each, count in fed(seed).answers.items()
        if each[1] not in {Answer.NONE, Answer.PARKED, Answer.MEMBER_ID_REQUIRED, Answer.REBALANCE_IN_PROGRESS}
    }
    assert set(bad) <= {(EventType.HEARTBEAT, Answer.UNKNOWN_MEMBER_ID)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_group_storms_within_a_minute(seed: int) -> None:
    """Five rebalances begin in the crash loop's group, and one member is expired again and again; no other storms."""
    found = fed(seed).verdicts
    storm = found[named(Role.STORM)]
    assert len(begun(storm)) >= STORM
    assert len({each.client_id for each in storm if each.expiry_reason}) == 1
    assert sum(each.expiry_reason is not None for each in storm) > 1
    classic = [group_name(PLAN, n) for n in range(PLAN.groups) if role_of(PLAN, n) is not Role.PRESENCE]
    others = [name for name in classic if name != named(Role.STORM) and len(begun(found[name])) >= STORM]
    assert others == []


def test_scripts_make_no_storm_in_the_long_run() -> None:
    """In no five minutes of a quarter of an hour do five rebalances begin in a group whose script is not the storm."""
    found = fed(1, 900_000).verdicts
    for role in (Role.BLOCKED, Role.STATIC, Role.POLL_TIMEOUT):
        times = [each.time_ms for each in begun(found[named(role)])]
        assert len(times) > STORM
        assert min(later - first for first, later in zip(times, times[STORM - 1 :], strict=False)) > 300_000, role


def test_one_member_holds_up_a_rebalance() -> None:
    """One join phase lasts for about 25 s, as one member beats and does not join again; nobody is expired for it."""
    found = fed().verdicts[named(Role.BLOCKED)]
    lengths = [each.duration_ms or 0 for each in found if each.kind is Kind.REBALANCE_COMPLETED]
    assert len([each for each in lengths if 20_000 < each < 30_000]) == 1
    assert not any(each.expiry_reason for each in found)


def test_a_static_member_returns_in_time_and_another_does_not() -> None:
    """Who is back within its session keeps its place without a rebalance; who is not makes two."""
    found = fed().verdicts[named(Role.STATIC)]
    replaced = [each for each in found if each.kind is Kind.STATIC_REPLACED]
    expired = [each for each in found if each.expiry_reason]
    assert len(replaced) == len(expired) == 1
    assert expired[0].expiry_reason is ExpiryReason.SESSION_TIMEOUT
    assert replaced[0].group_instance_id != expired[0].group_instance_id
    assert [each.cause for each in begun(found)] == ["member_joined", "member_expired", "member_joined"]


def test_a_poll_timeout_is_a_leave_that_says_so() -> None:
    """A consumer that did not poll in time leaves by itself, in the words of Kafka's client, and joins again."""
    plan = msgspec.structs.replace(PLAN, duration_ms=60_000)
    members = MixedMembers(plan)
    reasons: Counter[str] = Counter()
    for step in mixed_steps(plan):
        if step.action is Action.POLL_TIMEOUT:
            (sent,) = members.act(step.member, step.action, step.at_ms)
            event = decode_event(sent.value)
            reasons[f"{event.group_id}: {event.reason}"] += 1
        elif step.action is not Action.GARBAGE:
            for each in list(members.act(step.member, step.action, step.at_ms)):
                members.landed(each, round(step.at_ms), step.at_ms)
    assert reasons == {f"{named(Role.POLL_TIMEOUT)}: consumer poll timeout has expired.": 1}
    causes = [each.cause for each in begun(fed().verdicts[named(Role.POLL_TIMEOUT)])]
    assert causes == ["member_joined", "member_left", "member_joined"]


def test_every_group_settles() -> None:
    """A minute in, the groups without a script are Stable, and so are all but few of the others."""
    states = fed().states
    calm = [group_name(PLAN, n) for n in range(PLAN.groups) if role_of(PLAN, n) in {Role.CLASSIC, Role.PRESENCE}]
    assert sum(states[name] == ["Stable"] for name in calm) >= len(calm) - 1
