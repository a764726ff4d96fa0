"""A plan is a pure function of its settings, and its lives keep the promises of its fields."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heartwheel.proof.members.garbage import GARBAGE_KINDS, garbage
from heartwheel.proof.members.schedule import Action, FeedPlan, MemberStep, steps
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError

BUSY = FeedPlan(
    groups=4,
    members_per_group=5,
    heartbeat_interval_ms=1000,
    session_timeout_ms=4000,
    duration_ms=120_000,
    kill_rate=1.0,
    pause_rate=2.0,
    leave_rate=0.5,
    garbage_share=0.05,
)
SENDING = {Action.START, Action.BEAT, Action.RESUME, Action.RETURN}


def lives(plan: FeedPlan) -> dict[int, list[MemberStep]]:
    """Sort the steps of a plan by member."""
    found: dict[int, list[MemberStep]] = defaultdict(list)
    for step in steps(plan):
        found[step.member].append(step)
    return found


def test_one_seed_is_one_schedule() -> None:
    """The same seed gives the same steps; another seed gives others."""
    other = msgspec.structs.replace(BUSY, seed=2)
    assert list(steps(BUSY)) == list(steps(BUSY))
    assert list(steps(BUSY)) != list(steps(other))


def test_members_do_not_depend_on_each_other() -> None:
    """The draws of a member stay the same when more members are simulated beside it."""
    more = msgspec.structs.replace(BUSY, groups=8)
    first, again = lives(BUSY)[0], lives(more)[0]
    assert [step.action for step in first] == [step.action for step in again]


@given(st.integers(0, 10_000))
def test_steps_are_in_order_of_time_and_within_the_duration(seed: int) -> None:
    """Whoever takes the steps one by one never has to go back in time."""
    plan = FeedPlan(groups=2, members_per_group=3, duration_ms=60_000, kill_rate=2.0, pause_rate=2.0, seed=seed)
    times = [step.at_ms for step in steps(plan)]
    assert times == sorted(times)
    assert all(0 <= at_ms < 60_000 for at_ms in times)


def test_silences_are_short_or_long_but_never_near_the_timeout() -> None:
    """Beats and short pauses stay well within a session, long pauses and returns well outside: no verdict is luck."""
    shares = []
    for life in lives(BUSY).values():
        sent = [step.at_ms for step in life if step.action in SENDING]
        shares += [(late - early) / BUSY.session_timeout_ms for early, late in itertools.pairwise(sent)]
    assert any(share > 1 for share in shares)
    assert not [share for share in shares if 0.85 < share < 1.25]


def test_every_kind_of_turn_happens_and_in_a_sensible_order() -> None:
    """After a kill or a leave only a return can come, after a pause only a resumption."""
    seen = Counter(step.action for step in steps(BUSY))
    assert set(seen) == set(Action) - {Action.STALL, Action.POLL_TIMEOUT}, "those two are scripted: test_mix.py"
    for life in lives(BUSY).values():
        for before, after in itertools.pairwise(step.action for step in life if step.action is not Action.GARBAGE):
            if before in {Action.KILL, Action.LEAVE}:
                assert after is Action.RETURN
            if before is Action.PAUSE:
                assert after is Action.RESUME


def test_senseless_plans_are_refused_with_all_faults_at_once() -> None:
    """Each number that makes no sense is named with its value."""
    with pytest.raises(ValueError, match=r"jitter is 2.0, not in 0..1; groups is 0, not positive; kill_rate is -1.0"):
        FeedPlan(jitter=2.0, groups=0, kill_rate=-1.0)
    with pytest.raises(ValueError, match="not shorter than the session timeout of 10000 ms"):
        FeedPlan(heartbeat_interval_ms=9500)


@pytest.mark.parametrize("kind", GARBAGE_KINDS)
def test_garbage_is_rejected_with_its_own_cause(kind: RejectCause) -> None:
    """Each of the six kinds is one that the engine tells apart."""
    with pytest.raises(RejectedError) as caught:
        decode_event(garbage(kind, group_id="g", member_id="m"))
    assert caught.value.cause == kind


def test_garbage_is_good_but_for_its_one_fault() -> None:
    """The record that the garbage is made from would be accepted, so that nothing else can be the cause."""
    truncated = garbage(GARBAGE_KINDS[0], group_id="g", member_id="m")
    assert truncated is not None
    assert decode_event(truncated + b"}") == Event(
        type=EventType.HEARTBEAT, group_id="g", member_id="m", session_timeout_ms=10_000
    )
