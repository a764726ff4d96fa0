"""Feeds in the simulated world: what they write, and what the checker of marks reads from it."""

from __future__ import annotations

import dataclasses
from typing import Any

from heartwheel.engine.rules.answer import Answer
from heartwheel.proof.simulation import draw_plan, simulate
from heartwheel.proof.simulation.checkers.fed_moving import MovingGroup
from heartwheel.proof.simulation.checkers.fed_partition import NOWHERE, Aside, FedPartition, Followed, Missed, Reach
from heartwheel.proof.simulation.plan.clocks import EPOCH_MS, HostClock
from heartwheel.proof.simulation.plan.feeds import FeedFault, FeedFaultKind, FeedsPlan, SimulatedFeed
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.feeds import Write, relayed_writes
from heartwheel.proof.simulation.world.tapped import ReceivedRequest
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.passed_on import read_mark, read_passed_on
from support.fed_growth import MOVING, parts

T0 = EPOCH_MS


def _plan(*names: str, **changes: Any) -> Plan:
    """Make a plan with feeds in which nothing goes wrong, but for what a test asks for."""
    calm: dict[str, Any] = {
        "clock": HostClock(),
        "start_ms": 0,
        "until_ms": 3_000,
        "turn_ms": 500,
        "settle_ms": 0,
        "troubles": (),
        "lost_marks": 0.0,
        "repeats": 0.0,
        "untimely": 0.0,
        "shuffles": False,
        "holds": True,
        "refused": False,
    }
    feeds = FeedsPlan(feeds=tuple(SimulatedFeed(name=name, **calm | changes) for name in names))
    return dataclasses.replace(draw_plan(2), partitions=1, shards=1, feed_ms=3_000, passed_on=feeds)


def _received(true_ms: int, member: str = "a", *, answered_ms: int | None = None) -> ReceivedRequest:
    event, answer = Event(group_id="g", member_id=member), Answer.NONE if answered_ms is None else Answer.PARKED
    return ReceivedRequest(
        true_ms, T0 + true_ms, 0, "g", event, answer, true_ms if answered_ms is None else answered_ms
    )


def _times(writes: list[Write]) -> list[int]:
    """List when what was passed on happened, ms after the begin, in the order in which it was written."""
    said = [read_passed_on(write.value) for write in writes if read_mark(write.value) is None]
    return [each.at_ms - T0 for each in said if each is not None]


def test_a_quarter_of_the_seeds_has_feeds() -> None:
    """Those that tests name for something else have none."""
    assert 200 < sum(bool(draw_plan(seed).passed_on.feeds) for seed in range(1_000)) < 260
    assert not any(draw_plan(seed).passed_on.feeds for seed in (0, 1, 3, 7, 15, 24, 39, 57, 78, 419, 428))


def test_one_seed_with_feeds_is_one_history() -> None:
    """A seed gives the same history to the letter each time."""
    assert draw_plan(8).passed_on.feeds
    assert simulate(8, keep_lines=True) == simulate(8, keep_lines=True)


def test_a_feed_keeps_its_word() -> None:
    """What happened before a mark stands before it; a group of which a join waits for its answer is held back at it."""
    writes = relayed_writes(_plan("one"), [_received(100), _received(200, answered_ms=1_700), _received(900)], Story())
    passed_ms = -1
    for write in writes:
        said, mark = read_passed_on(write.value), read_mark(write.value)
        if mark is not None:
            passed_ms = min(mark.passed_ms, mark.held.get("g", mark.passed_ms))
        elif said is not None:
            assert said.at_ms >= passed_ms
    assert _times(writes) == [100, 900, 200]


def test_what_befalls_a_feed() -> None:
    """A feed that lags passes on everything; one that misses something says so; one that repeats writes it twice."""
    received = [_received(true_ms) for true_ms in (100, 1_200, 2_300)]
    for kind, times in (
        (FeedFaultKind.LAGS, {100, 1_200, 2_300}),
        (FeedFaultKind.MISSES, {100, 2_300}),
        (FeedFaultKind.FALLS_SILENT, {100}),
    ):
        writes = relayed_writes(_plan("one", troubles=(FeedFault(1_100, 2_000, kind),)), received, Story())
        assert set(_times(writes)) == times
        gaps = {mark.since_ms - T0 for write in writes if (mark := read_mark(write.value)) is not None}
        assert gaps == ({0, 2_000} if kind is FeedFaultKind.MISSES else {0})
    plan = _plan("one", repeats=1.0)
    assert _times(relayed_writes(plan, received[:1], Story())) == [100, 100]


def _grown(plan: Plan, *, start_ms: int = 0) -> Plan:
    return dataclasses.replace(plan, partitions=1, grown=(1_000, 2), start_ms=start_ms)


def test_a_feed_goes_on_in_a_partition_that_is_added() -> None:
    """Once a feed knows that the topic has grown, it relays groups to the new partitions and writes marks to all."""
    received = [dataclasses.replace(_received(true_ms), group_id=MOVING) for true_ms in (100, 1_100, 2_100)]
    writes = relayed_writes(_grown(_plan("one", metadata_age_ms=700)), received, Story())
    marks = [(write.true_ms, write.partition) for write in writes if read_mark(write.value) is not None]
    assert {partition for true_ms, partition in marks if true_ms < 1_700} == {0}
    assert {partition for true_ms, partition in marks if true_ms >= 1_700} == {0, 1}
    told = [(write.true_ms, write.partition) for write in writes if read_mark(write.value) is None]
    assert [partition for _, partition in told] == [int(true_ms >= 1_700) for true_ms, _ in told]
    assert {partition for _, partition in told} == {0, 1}


def _moving(log: LogBuilder, ends: list[tuple[int, int]], known_since: int, *, is_foreseen: bool = True) -> Followed:
    """Follow the group through batches that end at an offset in each partition."""
    logs = parts(log.records)
    plan = _grown(_plan("one"))
    found = {at: FedPartition(plan, records, [end[at] for end in ends]) for at, records in enumerate(logs)}
    homes = [{0, 1} if batch >= known_since else {0} for batch in range(len(ends))]
    return MovingGroup(MOVING, found, homes, is_foreseen=is_foreseen).followed


def _told_in_both() -> LogBuilder:
    log = LogBuilder()
    for partition, at_ms in ((0, 500), (1, 1_500)):
        log.pass_on(T0 + at_ms, Event(group_id=MOVING, member_id="a"), T0 + at_ms, feed="one", partition=partition)
        log.mark(T0 + at_ms + 100, T0 + at_ms + 100, feed="one", partition=0)
    log.mark(T0 + 1_600, T0 + 1_600, feed="one", partition=1, held={MOVING: T0 + 1_550})
    return log


def test_the_checker_waits_for_a_feed_in_every_partition_of_a_group() -> None:
    """Until the growth is known the marks of the one count, then those of both, and what is held back in either."""
    reached = _moving(_told_in_both(), [(2, 0), (2, 1), (3, 1), (3, 2)], known_since=1).reached
    assert [reach.at_most - T0 for reach in reached] == [600, 600, 600, 1_550]
    assert [reach.surely - T0 for reach in reached] == [600, 600, 600, 1_549]


def test_the_checker_puts_aside_what_a_growth_makes_late() -> None:
    """What was written to the new partition before the job knew of it, and what a new checkpoint cannot know."""
    log = _told_in_both()
    assert _moving(log, [(2, 0), (3, 2)], known_since=1).aside is None
    assert _moving(log, [(3, 0), (3, 2)], known_since=1).aside is Aside.LATE
    assert _moving(log, [(3, 2)], known_since=0, is_foreseen=False).aside is Aside.UNFORESEEN
    log.pass_on(T0 + 1_700, Event(group_id=MOVING, member_id="b"), T0 + 500, feed="one", partition=1)
    assert _moving(log, [(3, 3)], known_since=0).aside is not None


def _followed(log: LogBuilder, ends: list[int], *names: str) -> Followed:
    return FedPartition(_plan(*names), log.records, ends).groups["g"]


def test_the_checker_goes_by_the_marks() -> None:
    """How far a group comes with each batch: by its own feed, by the others once it is silent, back by what is held."""
    log = LogBuilder()
    for feed in ("one", "two"):
        log.mark(T0, T0, feed=feed)
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0 + 500, feed="one")
    log.mark(T0, T0 + 1_000, feed="one")
    log.mark(T0, T0 + 800, feed="two")
    log.mark(T0, T0 + 2_000, held={"g": T0 + 600}, feed="one")
    reached = _followed(log, [2, 3, 4, 5, 6], "one", "two").reached
    assert reached[0] == NOWHERE
    assert reached[1:4] == [
        Reach(*[T0] * 4),
        Reach(T0 + 1_000, *[T0 + 500] * 3),
        Reach(T0 + 1_000, *[T0 + 800] * 3),
    ]
    assert reached[4] == reached[3]


def test_the_checker_knows_that_a_group_may_be_forgotten_with_its_feeds() -> None:
    """A group without members that goes on with another feed may wait for both, or for that one alone."""
    log = LogBuilder()
    for feed in ("one", "two"):
        log.mark(T0, T0, feed=feed)
    log.pass_on(T0, Event(group_id="g", type=EventType.UNLOAD), T0 + 100, feed="one")
    log.mark(T0, T0 + 500, feed="one")
    log.pass_on(T0, Event(group_id="g", type=EventType.LOAD), T0 + 200, feed="two")
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0 + 1_000, feed="two")
    log.mark(T0, T0 + 900, feed="two")
    log.mark(T0, T0 + 1_700, feed="two")
    reached = _followed(log, [6, 7, 8], "one", "two").reached
    assert [(reach.at_most - T0, reach.forgotten - T0) for reach in reached] == [(0, 200), (500, 500), (500, 1_000)]


def test_the_checker_knows_what_was_missed() -> None:
    """Between the last mark and a later begin nothing is known, of a group that was held back from where it was."""
    log = LogBuilder()
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0, feed="one")
    log.mark(T0, T0 + 1_000, held={"g": T0 + 300}, feed="one")
    log.mark(T0 + 9_000, T0 + 9_000, since_ms=T0 + 8_000, feed="one")
    (gap,) = _followed(log, [3], "one").missed
    assert gap == Missed("one", T0 + 1_000, T0 + 8_000, {"g": T0 + 300})
    assert (gap.began_ms("g"), gap.began_ms("h")) == (T0 + 300, T0 + 1_000)


def test_the_checker_puts_aside_what_nothing_promises() -> None:
    """What comes behind its mark, and what two feeds tell of one millisecond; not what a stranger says."""
    log = LogBuilder()
    for feed in ("one", "two", "stranger"):
        log.mark(T0, T0 + 1_000, feed=feed)
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0 + 1_500, feed="one")
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0, feed="stranger")
    assert _followed(log, [], "one", "two").aside is None
    log.pass_on(T0, Event(group_id="g", member_id="b"), T0 + 1_500, feed="two")
    assert _followed(log, [], "one", "two").aside is Aside.TIED
    for feed in ("one", "two"):
        log.mark(T0, T0 + 3_000, feed=feed)
    log.pass_on(T0, Event(group_id="g", member_id="a"), T0 + 2_000, feed="one")
    assert _followed(log, [], "one", "two").aside is Aside.LATE
