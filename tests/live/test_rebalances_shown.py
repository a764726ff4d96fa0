"""What rebalances cost: of all that are kept, not of the newest."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.rebalances import LONGEST_MAX, SLOTS, list_rebalances
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow, row_of
from heartwheel.wire.verdicts import Verdict, topic_of
from support.output_rows import T0, begun, joined, topic_rows

HOUR_MS = 3_600_000


def rebalance(group: str, at_ms: int, took_ms: int, *, removed: tuple[str, ...] = ()) -> list[TriggerRow]:
    """Make a rebalance of a classic group, from its begin to its end."""
    first = msgspec.structs.replace(begun(group, at_ms=at_ms), group_kind="classic")
    last = msgspec.structs.replace(
        joined(group, at_ms=at_ms + took_ms),
        leader="l",
        duration_ms=took_ms,
        group_kind="classic",
        removed=removed,
        removed_count=len(removed),
    )
    return [first, last]


def pictured(*rows: TriggerRow | ExpirationRow) -> Picture:
    """Make a picture of rows that keeps a day."""
    picture = Picture(window_ms=24 * HOUR_MS)
    picture.apply(topic_rows(*rows), now_ms=T0 + 13 * HOUR_MS)
    return picture


def test_longest_and_strip_are_of_all_rebalances() -> None:
    """The twelve long rebalances of the morning are what people look for, whatever came in the evening."""
    morning = [row for i in range(12) for row in rebalance("shop", T0 + i * 300_000, 120_000, removed=("slow",))]
    evening = [row for i in range(700) for row in rebalance("shop", T0 + 12 * HOUR_MS + i * 5_000, 200)]
    page = list_rebalances(pictured(*morning, *evening))
    (shop,) = page.groups
    assert (shop.rebalances, shop.lost_ms, shop.longest_ms) == (712, 12 * 120_000 + 700 * 200, 120_000)
    assert [row.duration_ms for row in shop.longest] == [120_000] * LONGEST_MAX
    assert page.from_ms == T0
    assert shop.strip[0].at == 0
    assert shop.strip[0].blocked
    assert sum(slot.rebalances for slot in shop.strip) == 712
    assert abs(sum(slot.lost_ms or 0 for slot in shop.strip) - (shop.lost_ms or 0)) <= len(shop.strip)


def test_rebalance_that_is_not_over_comes_first() -> None:
    """It has no length to be ranked by, and it is the one that is looked for."""
    ended = [row for i in range(7) for row in rebalance("shop", T0 + i * 10_000, 1_000 + i)]
    page = list_rebalances(pictured(*ended, rebalance("shop", T0 + HOUR_MS, 1)[0]))
    lengths = [row.duration_ms for row in page.groups[0].longest]
    assert lengths == [None, 1_006, 1_005, 1_004, 1_003]
    assert page.groups[0].longest[0].ended_ms is None


@pytest.mark.parametrize(("before", "made"), [(3, 4), (0, 1), (-1, -1)])
def test_number_is_that_of_the_generation_that_it_makes(before: int, made: int) -> None:
    """While it runs as well as later: its first row has the generation that it ends."""
    first, last = rebalance("shop", T0, 1_000)
    first = msgspec.structs.replace(first, generation_id=before)
    open_ = list_rebalances(pictured(first)).groups[0].longest
    assert [(row.ended_ms, row.generation_id) for row in open_] == [(None, made)]
    if made > 0:
        done = list_rebalances(pictured(first, msgspec.structs.replace(last, generation_id=made)))
        assert [row.generation_id for row in done.groups[0].longest] == [made]


def joining(client: str, member_id: str = "", *, assigned: str | None = None) -> Event:
    """Make the join of a static member whose session is 6 s; a new one is given its id."""
    return Event(
        type=EventType.JOIN,
        group_id="shop",
        member_id=member_id,
        assigned_member_id=assigned,
        client_id=client,
        group_instance_id=client,
        session_timeout_ms=6_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
    )


def test_rebalance_names_the_dead_member_that_it_waited_for() -> None:
    """While a member joins, another is dead: the group waits until its session is over, and its end names it."""
    said: list[Verdict] = []
    machine = GroupMachine(Group("shop"), CoordinatorConfig(), said.append)
    for at_ms, event in (
        (0, joining("a", assigned="a-1")),
        (100, joining("b", assigned="b-1")),
        (3_200, Event(type=EventType.SYNC, group_id="shop", group_instance_id="a", member_id="a-1", generation_id=1)),
        (3_300, Event(type=EventType.SYNC, group_id="shop", group_instance_id="b", member_id="b-1", generation_id=1)),
        (5_000, joining("c", assigned="c-1")),
        (5_500, joining("a", "a-1")),
    ):
        machine.apply(event, T0 + at_ms)
    machine.advance(T0 + 9_500)
    rows = [row_of(each, shard=0, detected_ms=each.time_ms + 900) for each in said if topic_of(each)]
    (dead,) = [row for row in rows if isinstance(row, ExpirationRow)]
    (shop,) = list_rebalances(pictured(*rows)).groups
    newest = max(shop.longest, key=lambda row: row.started_ms)
    assert (dead.member_id, dead.reason) == ("b-1", "session_timeout")
    assert (newest.cause, newest.ended_ms, newest.blocked_by) == ("member_joined", dead.deadline_ms, ["b-1"])
    assert [row.blocked_by for row in shop.longest if row is not newest] == [[]]


def test_little_lost_time_is_little_in_the_strip() -> None:
    """A group that rebalances all day for a hundredth of the time loses a hundredth of each slot, not all of it."""
    page = list_rebalances(pictured(*(row for i in range(720) for row in rebalance("g", T0 + i * 20_000, 200))))
    (group,) = page.groups
    assert max((slot.lost_ms or 0) / page.slot_ms for slot in group.strip) < 0.02
    assert len(group.strip) == SLOTS


def test_rebalance_over_several_slots_is_divided_among_them() -> None:
    """A rebalance that lasts for half of the time fills half of the slots."""
    rows = [*rebalance("g", T0, 100_000), *rebalance("g", T0 + 199_900, 100)]
    page = list_rebalances(pictured(*rows))
    full = [slot.at for slot in page.groups[0].strip if slot.lost_ms == round(page.slot_ms)]
    assert full == list(range(SLOTS // 2))


def test_rebalance_that_runs_has_no_length() -> None:
    """A rebalance that has not ended is counted, and its length is not made up."""
    (running, _) = rebalance("g", T0, 5_000)
    (group,) = list_rebalances(pictured(running)).groups
    assert (group.rebalances, group.lost_ms, group.unmeasured) == (1, None, 1)
    assert [(slot.rebalances, slot.lost_ms) for slot in group.strip] == [(1, None)]


def test_presence_groups_do_not_rebalance() -> None:
    """Who comes to a presence group or goes makes nobody wait: such groups are not listed."""
    rows = [msgspec.structs.replace(row, group_kind="presence") for row in rebalance("crash", T0, 0)]
    empty = msgspec.structs.replace(rows[1], id="e", type="group_empty", time_ms=T0 + 9_000, cause="no_members")
    assert list_rebalances(pictured(*rows, empty)).groups == []
