"""The timeline of brokers' logs: members as lanes, who was removed, which rebalances waited for whom, worst first."""

from __future__ import annotations

import gc
import io
import weakref
from pathlib import Path

import pytest

from heartwheel.readers.live.lane_documents import GroupLanes, LanePage
from heartwheel.readers.live.lane_page import LaneFilter, LaneSource, lane_page
from heartwheel.readers.live.lane_store import LaneStore, MemberJoined
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened
from support.broker_logs import REAL
from support.scripted_log import START_MS, lines_of, member, preparing, stable


class Name(str):
    """A name that can be watched: an ordinary text cannot."""

    __slots__ = ("__weakref__",)


NOW_MS = START_MS + 3_600_000


def store_of(*names: str) -> LaneStore:
    """Read logs into a store."""
    store = LaneStore()
    for event in explain_logs(names, Scanned(), stdin=io.BytesIO(), joined=store.joined):
        store.add(event)
    return store


def page_of(store: LaneStore, *, follows: bool = False, **wanted: object) -> LanePage:
    """Return the first page of a time."""
    return lane_page(LaneSource(store, follows=follows), LaneFilter(**wanted), now_ms=NOW_MS)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def real() -> dict[str, GroupLanes]:
    """Return the groups of a real broker's log."""
    return {group.group_id: group for group in page_of(store_of(str(REAL / "server.log"))).groups}


def what(group: GroupLanes) -> dict[str, list[str]]:
    """Return what happened to each member."""
    return {lane.name: [mark.kind for mark in lane.marks] for lane in group.lanes}


def test_a_member_is_one_lane_through_its_returns(real: dict[str, GroupLanes]) -> None:
    """It has a new id each time, and the log pairs the two."""
    assert what(real["billing"]) == {"billing-1": ["joined", "removed", "returned"], "billing-2": ["joined", "left"]}
    deploys = real["deploys"]
    assert [(lane.name, lane.ids, len(lane.spans)) for lane in deploys.lanes] == [
        (f"deploys-{number}", 3, 3) for number in range(4)
    ]
    assert (deploys.rebalances_count, len(deploys.storms), deploys.storms[0].count) == (17, 1, 17)


def test_a_removal_has_its_cause_its_advice_and_its_return(real: dict[str, GroupLanes]) -> None:
    """And the member that a rebalance waited for is named by it, and by its lane."""
    (removed,) = real["billing"].removals
    assert (removed.reason, removed.returned_ms is not None) == ("poll_timeout", True)
    assert "max.poll.interval.ms" in removed.advice
    assert removed.evidence.endswith("server.log:931")
    search = real["search"]
    assert [row.blocked_by for row in search.rebalances if row.blocked_by] == [[search.removals[0].member_id]]
    assert (search.lanes[0].name, search.lanes[0].removals, search.lanes[0].blocked) == ("search-3", 1, 1)


def test_the_worst_groups_come_first() -> None:
    """Removals before storms, storms before rebalances; one page after the other."""
    store = store_of(str(REAL / "server.log"))
    source = LaneSource(store)
    first = lane_page(source, LaneFilter(), now_ms=NOW_MS, limit=4)
    rest = lane_page(source, LaneFilter(), now_ms=NOW_MS, limit=4, before=int(first.next or 0))
    assert [group.removals_count for group in first.groups] == [1, 1, 1, 1]
    assert [group.group_id for group in rest.groups] == ["deploys", "clicks"]
    assert (first.matched, first.removals, first.storms, rest.next) == (6, 4, 1, None)
    assert sum(slot.removals for slot in first.slots) == 4


def test_a_time_shows_what_was_in_it_and_who_was_there_before(tmp_path: Path) -> None:
    """A member that joined before the time is in it from its begin on, and one that had left is not."""
    log = tmp_path / "server.log"
    joins = [f"Adding new member {member('a', n)} with group instance id None" for n in (1, 2)]
    left = (
        f"Member MemberMetadata(memberId={member('a', 2)}, groupInstanceId=None, clientId=a, clientHost=/10.0.0.7, "
        "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g through "
        "explicit `LeaveGroup`; client reason: the consumer is being closed"
    )
    fails = f"Member {member('a')} in group g has failed, removing it from the group"
    lines = [(0, preparing(0, joins[0])), (1, stable(1)), (2, preparing(1, joins[1])), (3, stable(2)), (9, left)]
    log.write_text(lines_of(*lines, (100, fails)))
    (group,) = page_of(store_of(str(log)), since_ms=START_MS + 50_000).groups
    assert [(lane.member_id, what(group)[lane.name]) for lane in group.lanes] == [(member("a"), ["removed"])]
    (span,) = group.lanes[0].spans
    assert (span.from_ms, span.to_ms) == (START_MS, START_MS + 100_000)
    assert page_of(store_of(str(log)), since_ms=START_MS + 10_000, until_ms=START_MS + 20_000).groups == []


def test_what_is_followed_ends_now() -> None:
    """A log that has ended ends with its last line, and one that is followed at this moment."""
    store = store_of(str(REAL / "server.log"))
    ended, goes_on = page_of(store), page_of(store, follows=True, last_ms=3_600_000)
    assert (ended.is_now, ended.to_ms) == (False, (store.newest_ms or 0) + 1)
    assert (goes_on.is_now, goes_on.to_ms, goes_on.from_ms) == (True, NOW_MS, NOW_MS - 3_600_000)


def _event(kind: Happened, time_ms: int, **fields: object) -> ExplainedEvent:
    return ExplainedEvent(
        kind=kind,
        group_id="g",
        time_ms=time_ms,
        reason="left",
        evidence=Evidence("f", 1),
        **fields,  # type: ignore[arg-type]
    )


def test_a_leave_that_was_a_poll_timeout_is_shown_once() -> None:
    """Only the member's return shows it, so the event comes twice while a log is followed."""
    store = LaneStore()
    store.add(_event(Happened.LEFT, 1_000, member_id="m"))
    store.add(_event(Happened.POLL_TIMEOUT, 1_000, member_id="m"))
    store.joined(MemberJoined(5_000, "g", "m", "m", "m"))
    (group,) = page_of(store).groups
    assert what(group) == {"m": ["removed", "returned"]}
    assert group.removals[0].returned_ms == 5_000


def test_a_rebalance_that_runs_and_ends_is_one() -> None:
    """It is shown while it runs, and takes its length when it is over."""
    store = LaneStore()
    store.add(_event(Happened.REBALANCING, 20_000, started_ms=1_000))
    assert [row.ended_ms for row in page_of(store).groups[0].rebalances] == [None]
    store.add(_event(Happened.REBALANCE, 60_000, started_ms=1_000, blocked_by=["slow"]))
    (row,) = page_of(store).groups[0].rebalances
    assert (row.started_ms, row.ended_ms, row.blocked_by) == (1_000, 60_000, ["slow"])


def test_a_storm_is_in_each_time_that_it_reaches_into() -> None:
    """Also in one that begins after the storm did; and it grows while its event does."""
    store = LaneStore()
    storm = _event(Happened.STORM, 5_000, started_ms=1_000, duration_ms=4_000, member_count=5)
    store.add(storm)
    for number in range(1, 12):
        store.add(_event(Happened.REBALANCE, 1_000 * number + 100, started_ms=1_000 * number))
    assert page_of(store, since_ms=6_000).storms == 0
    storm.duration_ms, storm.member_count = 9_000, 10
    later = page_of(store, since_ms=6_000)
    assert (later.storms, later.groups[0].storms[0].from_ms, later.groups[0].storms[0].to_ms) == (1, 1_000, 10_000)


def test_the_oldest_are_dropped_and_the_store_says_from_when_on_it_knows() -> None:
    """In memory that does not grow, whatever happens and in however many groups."""
    store = LaneStore(marks_max=100)
    for number in range(1_000):
        store.joined(MemberJoined(number, f"g{number % 50}", f"m{number}", "m"))
    assert store.known_from_ms is not None
    assert store.known_from_ms >= 890
    marks = [mark for group in store.groups.values() for mark in group.marks]
    assert len(marks) <= 110
    assert min(mark.time_ms for mark in marks) == store.known_from_ms


def test_what_was_dropped_is_held_by_nothing() -> None:
    """Leaves wait for what corrects them, and a month has many members that left once under an id of their own."""
    store, held = LaneStore(marks_max=100), weakref.WeakSet[Name]()
    for number in range(2_000):
        name = Name(f"m{number}")
        held.add(name)
        store.add(_event(Happened.LEFT, number, member_id=name))
    del name
    gc.collect()
    assert len(held) <= 110
