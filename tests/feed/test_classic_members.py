"""Members of classic groups send what the coordinator's rules accept, and are expired exactly when they are silent."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from typing import NamedTuple

import msgspec
import pytest

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.proof.members.classic import ClassicMembers
from heartwheel.proof.members.members import Sent, group_name, identity
from heartwheel.proof.members.schedule import Action, FeedPlan, steps
from heartwheel.readers.live.returns import Arrival, is_return
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import EventType
from heartwheel.wire.verdicts import Kind, Verdict
from support.output_rows import expired as expired_row

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
PLAN = FeedPlan(
    groups=3,
    members_per_group=5,
    heartbeat_interval_ms=2000,
    session_timeout_ms=10_000,
    duration_ms=600_000,
    kill_rate=0.3,
    pause_rate=0.5,
    leave_rate=0.1,
    protocol="classic",
)


class Stall(NamedTuple):
    """Say when the broker takes nothing, ms since the start; what is sent meanwhile is stamped at the end."""

    from_ms: int
    to_ms: int


class Coordinator:
    """Run the members of a plan against the rules, every record stamped, and answered, a moment after it was sent."""

    def __init__(self, plan: FeedPlan, stamp_delay_ms: int, stall: Stall | None = None) -> None:
        self.verdicts: list[Verdict] = []
        self.answers: Counter[tuple[EventType, Answer]] = Counter()
        self.states: Counter[str] = Counter()
        self._delay_ms, self._stall = stamp_delay_ms, stall
        config = CoordinatorConfig()
        names = [group_name(plan, number) for number in range(plan.groups)]
        self.machines = {name: GroupMachine(Group(name), config, self.verdicts.append) for name in names}
        members = ClassicMembers(plan)
        flying: deque[tuple[int, Sent]] = deque()
        for step in steps(plan):
            if step.action is Action.GARBAGE:
                continue
            while flying and flying[0][0] + stamp_delay_ms <= step.at_ms:
                append_ms, landed = flying.popleft()
                members.landed(landed, append_ms, append_ms + stamp_delay_ms)
            for sent in members.act(step.member, step.action, step.at_ms):
                event, append_ms = decode_event(sent.value), self._stamp(round(step.at_ms))
                machine = self.machines[event.group_id]
                self.answers[event.type, machine.apply(event, append_ms)] += 1
                self.states[machine.group.state.value] += 1
                flying.append((append_ms, sent))
        for machine in self.machines.values():
            machine.advance((plan.duration_ms or 0) + stamp_delay_ms)

    def _stamp(self, at_ms: int) -> int:
        stall = self._stall
        return stall.to_ms if stall and stall.from_ms <= at_ms < stall.to_ms else at_ms + self._delay_ms


def illegal(coordinator: Coordinator) -> int:
    """Count requests with a generation that the group is not in."""
    return sum(count for (_, answer), count in coordinator.answers.items() if answer is Answer.ILLEGAL_GENERATION)


def expired(coordinator: Coordinator) -> Counter[str]:
    """Count expirations by reason."""
    return Counter(v.expiry_reason.value for v in coordinator.verdicts if v.expiry_reason)


@pytest.mark.parametrize("stamp_delay_ms", [0, 30])
@pytest.mark.parametrize("seed", range(1, 6))
def test_rules_never_see_an_impossible_request(seed: int, stamp_delay_ms: int) -> None:
    """No record has a wrong generation; an unknown member id is used only by who was expired, and finds it out so."""
    coordinator = Coordinator(msgspec.structs.replace(PLAN, seed=seed), stamp_delay_ms)
    assert not illegal(coordinator)
    unknown = [kind for kind, answer in coordinator.answers if answer is Answer.UNKNOWN_MEMBER_ID]
    assert set(unknown) <= {EventType.HEARTBEAT}


@pytest.mark.parametrize("seed", range(6, 12))
def test_late_answers_make_few_stale_requests(seed: int) -> None:
    """With half a second to the stamp and as much to the answer a member may speak of what is over: 1 record in 50."""
    coordinator = Coordinator(msgspec.structs.replace(PLAN, seed=seed), 500)
    assert illegal(coordinator) < 0.02 * coordinator.answers.total()


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_broker_that_stood_still_is_recovered_from(seed: int) -> None:
    """After a stall in which every session is over the members join again, and all of them are in a Stable group."""
    quiet = {"kill_rate": 0, "pause_rate": 0, "leave_rate": 0, "duration_ms": 120_000}
    plan = msgspec.structs.replace(PLAN, seed=seed, **quiet)
    coordinator = Coordinator(plan, 30, Stall(40_000, 60_000))
    assert expired(coordinator)["session_timeout"] >= plan.members
    for machine in coordinator.machines.values():
        assert (machine.group.state, len(machine.group.members)) == ("Stable", plan.members_per_group)


@pytest.mark.parametrize("seed", range(1, 6))
def test_only_silence_expires(seed: int) -> None:
    """Every expiration is a session timeout of a member that was killed or paused for long, and all of those happen."""
    plan = msgspec.structs.replace(PLAN, seed=seed)
    coordinator = Coordinator(plan, 30)
    silent = 0
    for life in lives(plan).values():
        for (at_ms, action), (until_ms, _) in zip(life, [*life[1:], (plan.duration_ms or 0, Action.BEAT)], strict=True):
            over = action in {Action.KILL, Action.PAUSE} and until_ms - at_ms > plan.session_timeout_ms + 60
            silent += over
    assert set(expired(coordinator)) == {"session_timeout"}
    assert abs(expired(coordinator)["session_timeout"] - silent) <= 1


def lives(plan: FeedPlan) -> dict[int, list[tuple[float, Action]]]:
    """Sort the steps by member."""
    found: dict[int, list[tuple[float, Action]]] = defaultdict(list)
    for step in steps(plan):
        found[step.member].append((step.at_ms, step.action))
    return found


def test_groups_rebalance_and_settle() -> None:
    """Each change leads to a completed rebalance with the next generation, and most of the time the group is stable."""
    coordinator = Coordinator(PLAN, 30)
    completed = [v for v in coordinator.verdicts if v.kind is Kind.REBALANCE_COMPLETED]
    for number in range(PLAN.groups):
        generations = [v.generation_id for v in completed if v.group_id == group_name(PLAN, number)]
        assert len(generations) > 10
        assert generations == sorted(set(generations))
    assert coordinator.states["Stable"] > coordinator.states.total() / 2


def test_every_start_gets_a_new_member_id() -> None:
    """A member that returns is a new one for the coordinator, as a restarted consumer is, and is known to be back."""
    members = ClassicMembers(PLAN)
    list(members.act(0, Action.START, 0))
    first = members.member_id(0)
    list(members.act(0, Action.KILL, 1))
    list(members.act(0, Action.RETURN, 20_000))
    assert members.member_id(0) != first
    who = identity(PLAN, 0)
    gone = expired_row(who.group_id, first, client_id=who.client_id)
    back = Arrival(group_id=who.group_id, member_id=members.member_id(0), time_ms=gone.deadline_ms)
    assert is_return(gone, back)
    assert re.fullmatch(f"{who.client_id}-{UUID}", first)
