"""What is long ago takes no memory of a log that is followed for months."""

from __future__ import annotations

import gc

import msgspec

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


def objects() -> list[object]:
    """Return all objects in memory, as far as what the garbage collector knows holds them."""
    gc.collect()
    known = gc.get_objects()
    held = [*known, *(each for holder in known for each in gc.get_referents(holder))]
    # The collector does not see into events, as they cannot hold one another.
    events = [each for each in held if type(each) is ExplainedEvent]
    held += [field for event in events for field in msgspec.structs.astuple(event)]
    return list({id(each): each for each in held}.values())


def kept(kind: type) -> int:
    """Count the objects of a type."""
    return sum(type(each) is kind for each in objects())


def text_kept(text: str) -> int:
    """Count the strings that contain a text."""
    return sum(text in each for each in objects() if type(each) is str)


def test_members_that_are_out_for_long_are_forgotten() -> None:
    """Of 500 members that a group loses in 500 weeks, the last are in memory, and no event of the others."""
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
