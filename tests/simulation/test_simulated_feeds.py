"""Feeds in the simulated world: what they write, and what the checker of marks reads from it."""

from __future__ import annotations

import dataclasses
from typing import Any

from heartwheel.engine.rules.answer import Answer
from heartwheel.proof.simulation import draw_plan, simulate
from heartwheel.proof.simulation.checkers.fed_log import NOWHERE, Aside, FedLog, Missed, Reach
from heartwheel.proof.simulation.plan.clocks import EPOCH_MS, HostClock
from heartwheel.proof.simulation.plan.feeds import FeedFault, FeedFaultKind, FeedsPlan, SimulatedFeed
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.feeds import Write, relayed_writes
from heartwheel.proof.simulation.world.tapped import ReceivedRequest
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.relayed import FEEDS_PARTITION, read_feed_fields, read_mark

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
    return dataclasses.replace(draw_plan(2), partitions=1, shards=1, feed_ms=3_000, relayed=feeds)


def _received(true_ms: int, member: str = "a", *, answered_ms: int | None = None) -> ReceivedRequest:
    event, answer = Event(group_id="g", member_id=member), Answer.NONE if answered_ms is None else Answer.PARKED
    return ReceivedRequest(
        true_ms, T0 + true_ms, 0, "g", event, answer, true_ms if answered_ms is None else answered_ms
    )


def _times(writes: list[Write]) -> list[int]:
    """List when what was passed on happened, ms after the begin, in the order in which it was written."""
    said = [read_feed_fields(write.value) for write in writes if read_mark(write.value) is None]
    return [each.at_ms - T0 for each in said if each is not None]


def test_a_quarter_of_the_seeds_has_feeds() -> None:
    """Those that tests name for something else have none."""
    assert 200 < sum(bool(draw_plan(seed).relayed.feeds) for seed in range(1_000)) < 260
    assert not any(draw_plan(seed).relayed.feeds for seed in (0, 1, 3, 7, 15, 24, 39, 57, 78, 419, 428))


def test_one_seed_with_feeds_is_one_history() -> None:
    """A seed gives the same history to the letter each time."""
    assert draw_plan(8).relayed.feeds
    assert simulate(8, keep_lines=True) == simulate(8, keep_lines=True)


def test_a_feed_keeps_its_word() -> None:
    """What happened before a mark stands before it; a group of which a join waits for its answer is held back at it."""
    writes = relayed_writes(_plan("one"), [_received(100), _received(200, answered_ms=1_700), _received(900)], Story())
    passed_ms = -1
    for write in writes:
        said, mark = read_feed_fields(write.value), read_mark(write.value)
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


def test_a_feed_writes_into_one_partition_of_a_topic_that_grows() -> None:
    """Whatever a group's id hashes to, and however many partitions there are."""
    received = [dataclasses.replace(_received(at_ms), group_id=f"g{at_ms}") for at_ms in range(100, 2_900, 200)]
    plan = dataclasses.replace(_plan("one"), partitions=3, grown=(1_000, 5))
    assert {write.partition for write in relayed_writes(plan, received, Story())} == {FEEDS_PARTITION}


def _fed(log: LogBuilder, ends: list[int], *names: str) -> FedLog:
    return FedLog(_plan(*names), [log.records], ends)


def _reached(log: LogBuilder, ends: list[int]) -> list[Reach]:
    fed = _fed(log, ends, "one", "two")
    return [fed.reach("g", batch) for batch in range(len(ends))]


def test_the_checker_goes_by_the_marks() -> None:
    """How far a group comes with each batch: by its own feed, by the others once it is silent, back by what is held."""
    log = LogBuilder()
    for feed in ("one", "two"):
        log.mark(T0, T0, feed=feed)
    log.relay(T0, Event(group_id="g", member_id="a"), T0 + 500, feed="one")
    log.mark(T0, T0 + 1_000, feed="one")
    log.mark(T0, T0 + 800, feed="two")
    log.mark(T0, T0 + 2_000, held={"g": T0 + 600}, feed="one")
    reached = _reached(log, [2, 3, 4, 5, 6])
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
    log.relay(T0, Event(group_id="g", type=EventType.UNLOAD), T0 + 100, feed="one")
    log.mark(T0, T0 + 500, feed="one")
    log.relay(T0, Event(group_id="g", type=EventType.LOAD), T0 + 200, feed="two")
    log.relay(T0, Event(group_id="g", member_id="a"), T0 + 1_000, feed="two")
    log.mark(T0, T0 + 900, feed="two")
    log.mark(T0, T0 + 1_700, feed="two")
    reached = _reached(log, [6, 7, 8])
    assert [(reach.at_most - T0, reach.forgotten - T0) for reach in reached] == [(0, 200), (500, 500), (500, 1_000)]


def test_the_checker_knows_what_was_missed() -> None:
    """Between the last mark and a later begin nothing is known, of a group that was held back from where it was."""
    log = LogBuilder()
    log.relay(T0, Event(group_id="g", member_id="a"), T0, feed="one")
    log.mark(T0, T0 + 1_000, held={"g": T0 + 300}, feed="one")
    log.mark(T0 + 9_000, T0 + 9_000, since_ms=T0 + 8_000, feed="one")
    (gap,) = _fed(log, [3], "one").missed
    assert gap == Missed("one", T0 + 1_000, T0 + 8_000, {"g": T0 + 300})
    assert (gap.began_ms("g"), gap.began_ms("h")) == (T0 + 300, T0 + 1_000)


def test_the_checker_puts_aside_what_nothing_promises() -> None:
    """What comes behind its mark, and what two feeds tell of one millisecond; not what a stranger says."""
    log = LogBuilder()
    for feed in ("one", "two", "stranger"):
        log.mark(T0, T0 + 1_000, feed=feed)
    log.relay(T0, Event(group_id="g", member_id="a"), T0 + 1_500, feed="one")
    log.relay(T0, Event(group_id="g", member_id="a"), T0, feed="stranger")
    assert _fed(log, [], "one", "two").why_aside("g") is None
    log.relay(T0, Event(group_id="g", member_id="b"), T0 + 1_500, feed="two")
    assert _fed(log, [], "one", "two").why_aside("g") is Aside.TIED
    for feed in ("one", "two"):
        log.mark(T0, T0 + 3_000, feed=feed)
    log.relay(T0, Event(group_id="g", member_id="a"), T0 + 2_000, feed="one")
    assert _fed(log, [], "one", "two").why_aside("g") is Aside.LATE
