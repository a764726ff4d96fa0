"""Who comes to a presence group, and goes, rebalances nothing: no storm, no word and no figure says otherwise."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.front.demo.lines import RollUp
from heartwheel.front.demo.tally import Tally
from heartwheel.readers.live.group_list import GroupFilter, list_groups
from heartwheel.readers.live.groups import group_detail, storms
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.states import PRESENCE_WORDS
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.metrics import Metrics
from heartwheel.readers.top.cells import group_cells
from heartwheel.settings import Settings
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow, row_of
from heartwheel.wire.verdicts import Verdict, topic_of
from support.output_rows import T0, topic_rows

RULE = StormRule(3, 60_000)
MEMBERS = ("a", "b", "c", "d")


def written(*events: tuple[int, Event], until_ms: int = 0) -> list[ExpirationRow | TriggerRow]:
    """Run a group's rules over events, given with their append times since T0, and take the rows of both topics."""
    said: list[Verdict] = []
    machine = GroupMachine(Group("g"), CoordinatorConfig(), said.append)
    for at_ms, event in events:
        machine.apply(event, T0 + at_ms)
    machine.advance(T0 + until_ms)
    return [row_of(each, shard=0, detected_ms=each.time_ms + 900) for each in said if topic_of(each)]


def rows_of(*events: tuple[int, Event], until_ms: int = 0) -> list[TriggerRow]:
    """Take the rows of its triggers alone."""
    return [row for row in written(*events, until_ms=until_ms) if isinstance(row, TriggerRow)]


def arrivals(*members: str) -> list[tuple[int, Event]]:
    """Let members of a presence group arrive, one a second."""
    return [
        (1_000 * number, Event(group_id="g", member_id=member, session_timeout_ms=20_000))
        for number, member in enumerate(members)
    ]


def departures(*members: str) -> list[tuple[int, Event]]:
    """Let members leave, one a second, after all have come."""
    return [
        (10_000 + 1_000 * number, Event(type=EventType.LEAVE, group_id="g", member_id=member))
        for number, member in enumerate(members)
    ]


def without_kind(rows: list[TriggerRow]) -> list[TriggerRow]:
    """Make the rows as earlier releases wrote them."""
    return [msgspec.structs.replace(row, group_kind=None) for row in rows]


def joins(*members: str) -> list[tuple[int, Event]]:
    """Let members of a classic group join, the first join phase be over, and the last member leave again."""
    joined = [
        (
            0,
            Event(
                type=EventType.JOIN,
                group_id="g",
                group_instance_id=f"i-{member}",
                assigned_member_id=member,
                session_timeout_ms=20_000,
                rebalance_timeout_ms=30_000,
                protocol_type="consumer",
                protocols=(Protocol("range"),),
            ),
        )
        for member in members
    ]
    return [*joined, (8_000, Event(type=EventType.LEAVE, group_id="g", member_id=members[-1]))]


def test_every_row_names_the_kind_of_its_group() -> None:
    """The first arrival, the last departure and all between say presence; the rows of a classic group say classic."""
    presence = rows_of(*arrivals(*MEMBERS), *departures(*MEMBERS))
    assert {row.type for row in presence} == {"rebalance_triggered", "rebalance_completed", "group_empty"}
    assert {row.group_kind for row in presence} == {"presence"}
    assert not any(row.is_rebalance for row in presence)
    classic = rows_of(*joins("a", "b"))
    assert [row.type for row in classic] == ["rebalance_triggered", "rebalance_completed", "rebalance_triggered"]
    assert {row.group_kind for row in classic} == {"classic"}
    assert all(row.is_rebalance for row in classic)


def test_rows_of_earlier_releases_are_told_apart_too() -> None:
    """Rows without the kind are told apart by what only a presence group's have: a join phase without length."""
    changes = [row for row in rows_of(*arrivals(*MEMBERS), *departures(*MEMBERS)) if row.type != "group_empty"]
    assert not any(row.is_rebalance for row in without_kind(changes))
    assert all(row.is_rebalance for row in without_kind(rows_of(*joins("a", "b"))))


@pytest.mark.parametrize("earlier", [False, True])
def test_arrivals_make_no_storm(earlier: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """However many members come to a presence group within a minute, it is in no storm; a classic group would be."""
    rows = rows_of(*arrivals(*MEMBERS), *departures(*MEMBERS[:3]))
    picture = Picture()
    picture.apply(topic_rows(*(without_kind(rows) if earlier else rows)), now_ms=T0)
    assert storms(picture, RULE, now_ms=T0) == []
    assert list_groups(picture, GroupFilter(storm=True), RULE, now_ms=T0).rows == []
    classic = [msgspec.structs.replace(row, id=f"c{row.id}", group_kind="classic") for row in rows]
    picture.apply(topic_rows(*classic), now_ms=T0)
    assert [group_id for group_id, _ in storms(picture, RULE, now_ms=T0)] == ["g"]


def test_a_presence_group_is_described_as_what_it_is() -> None:
    """What happened last is who came or went, it took no time, and the timeline has one line a change."""
    picture = Picture()
    picture.apply(topic_rows(*rows_of(*arrivals("a", "b"), *departures("b"))), now_ms=T0)
    group = group_detail(picture, "g", RULE, now_ms=T0)
    assert group is not None
    assert group.last is not None
    assert (group.kind, group.state_words) == ("presence", PRESENCE_WORDS)
    assert (group.last.words, group.last.duration_ms) == ("member left", None)
    assert [line["text"] for line in group.timeline] == [
        "b: member left, 1 member there, generation 3",
        "b: member arrived, 2 members there, generation 2",
        "a: member arrived, 1 member there, generation 1",
    ]
    picture.apply(topic_rows(*rows_of(*arrivals("a"), *departures("a"))[-1:]), now_ms=T0)
    (row,) = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert row.last is not None
    assert (row.last.words, row.last.duration_ms, row.members) == ("last member gone", None, 0)
    assert group_cells(row, now_ms=T0 + 60_000)[3].plain.startswith("last member gone, ")


def test_timeline_names_every_generation() -> None:
    """A worker that fails before its first heartbeat comes and goes at once, which makes two."""
    fails = Event(type=EventType.LEAVE, group_id="g", member_id="b", failure="exit code 127")
    picture = Picture()
    picture.apply(topic_rows(*written(*arrivals("a"), (5_000, fails))), now_ms=T0)
    group = group_detail(picture, "g", RULE, now_ms=T0)
    assert group is not None
    assert [line["text"] for line in group.timeline if line["kind"] != "expired"] == [
        "b: member expired, 1 member there, generations 2 and 3",
        "a: member arrived, 1 member there, generation 1",
    ]


@pytest.mark.parametrize("order", ["in time", "triggers first", "expirations first"])
@pytest.mark.parametrize("others", [(), ("a",)])
def test_a_job_that_only_fails_does_not_come_back(order: str, others: tuple[str, ...]) -> None:
    """Its next failure is no return, in whatever order the topics are read; its next heartbeat ends both failures."""
    fails = Event(type=EventType.LEAVE, group_id="g", member_id="b", failure="exit code 1")
    beat = Event(group_id="g", member_id="b", session_timeout_ms=20_000)
    rows = written(*arrivals(*others), (5_000, fails), (9_000, fails), (12_000, beat))
    beats_at, triggers = T0 + 12_000, [row for row in rows if isinstance(row, TriggerRow)]
    back = [row for row in triggers if row.time_ms == beats_at]
    before = [row for row in rows if row not in back]
    if order != "in time":
        before.sort(key=lambda row: isinstance(row, TriggerRow) is (order == "expirations first"))
    picture = Picture()
    for row in before:
        picture.apply(topic_rows(row), now_ms=T0)
    assert [row.returned_ms for row in picture.window.rows] == [None, None]
    returned = picture.apply(topic_rows(*back), now_ms=T0).returned
    assert [row.returned_ms for row in picture.window.rows] == [beats_at, beats_at]
    assert {row.id for row in returned} == {row.id for row in picture.window.rows}


def test_presence_groups_are_in_no_figure_of_rebalances() -> None:
    """Prometheus counts neither rebalances nor join phases of presence groups, and those of classic groups as ever."""
    of = Metrics(Settings.model_validate({"engine": {"shards": 1}}), since_ms=0)
    of.apply(topic_rows(*rows_of(*arrivals(*MEMBERS))))
    get = of.registry.get_sample_value
    assert get("heartwheel_rebalances_total", {"cause": "member_joined"}) == 0
    assert get("heartwheel_group_rebalances_total", {"group": "g"}) is None
    assert get("heartwheel_rebalance_duration_seconds_count") == 0
    of.apply(topic_rows(*rows_of(*joins("a", "b"))))
    assert get("heartwheel_rebalances_total", {"cause": "member_left"}) == 1
    assert get("heartwheel_rebalance_duration_seconds_count") == 1


def test_the_terminal_says_the_same() -> None:
    """The demo's line of a presence group says who came or went, as the page does, and counts no rebalance."""
    rows = rows_of(*arrivals("a", "b"))
    roll_up, tally = RollUp(), Tally(shards=1)
    list(roll_up.add((row, T0) for row in rows))
    assert [line.plain[10:] for line in roll_up.add(())] == [
        "presence   g            generation 0 -> 2  2 x member arrived, 2 members"
    ]
    assert len(tally.take(topic_rows(*rows), T0).triggers) == 4
    assert tally.rebalances == 0
