"""What is long ago takes no memory of a log that is followed for months."""

from __future__ import annotations

import gc

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.groups import LoggedMember
from heartwheel.sources.explain.history import History
from heartwheel.wire.explained import ExplainedEvent

WEEK_MS = 7 * 86_400_000


def removal(number: int, time_ms: int) -> Fact:
    """Make the fact that a member was removed, under an id that it never has again."""
    member_id = f"app-{number}-9c0f6a3e-1f7b-4c4e-9a55-{number:012x}"
    return Fact(order_ms=time_ms, time_ms=time_ms, kind=FactKind.FAILED, broker_id=1, group_id="g", member_id=member_id)


def rebalanced(number: int, time_ms: int) -> Fact:
    """Make the fact that the group has rebalanced."""
    return Fact(order_ms=time_ms, time_ms=time_ms, kind=FactKind.STABILIZED, broker_id=1, group_id="g", number=number)


def kept(kind: type) -> int:
    """Count the objects of a type."""
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


def text_kept(text: str) -> int:
    """Count the strings that objects hold and that contain a text."""
    gc.collect()
    held = {id(each): each for held in gc.get_objects() for each in gc.get_referents(held) if type(each) is str}
    return sum(text in each for each in held.values())


def test_members_that_are_out_for_long_are_forgotten() -> None:
    """Of 500 members that a group loses in 500 weeks, a week's are in memory, and no event of the others."""
    members, events = kept(LoggedMember), kept(ExplainedEvent)
    history = History(["log"], hold_ms=0)
    for number in range(500):
        list(history.add(removal(number, number * WEEK_MS)))
        list(history.add(rebalanced(number, number * WEEK_MS + 10)))
    assert 1 <= kept(LoggedMember) - members <= 3
    assert 1 <= kept(ExplainedEvent) - events <= 5
    assert 1 <= text_kept("-9c0f6a3e-1f7b-4c4e-9a55-0000000001") <= 10  # ids of the last 244 members; not its place


def test_members_that_were_out_lately_are_known() -> None:
    """Of 500 members that it loses in an hour, all are."""
    members, history = kept(LoggedMember), History(["log"], hold_ms=0)
    for number in range(500):
        list(history.add(removal(number, number * 7_000)))
    assert kept(LoggedMember) - members == 500
