"""Feeds: groups whose events are passed on late go by the times of their feed, and by no append time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import msgspec
import numpy as np
import pytest

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.shard.pack import Bodies, Pack, in_order_of_time
from heartwheel.engine.time import ReadingsBuilder
from heartwheel.engine.time.feeds import FEED_CLOSED_MS
from heartwheel.proof.audit.fed import read_feed_mark
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, ProducedRecord, by_group, frame_of, read_records
from heartwheel.wire.events import Event, EventType, Protocol, RejectCause
from heartwheel.wire.rejects import Reject
from heartwheel.wire.relayed import AHEAD_MS_MAX, HELD_MAX, FeedWatermark, encode_mark
from heartwheel.wire.verdicts import Kind, Verdict
from support.fed_logs import SESSION_MS
from support.heartbeat_logs import SEEDS, T0
from support.shard_runs import shard_runs

RULES = CoordinatorConfig(group_min_session_timeout_ms=200, group_initial_rebalance_delay_ms=0)


def _beat(member: str = "a", group: str = "g", session_ms: int = SESSION_MS) -> Event:
    return Event(group_id=group, member_id=member, session_timeout_ms=session_ms)


def _run(records: Sequence[Sequence[ProducedRecord]], feeds: Sequence[str] = ("tap",)) -> tuple[list[Verdict], Shard]:
    """Run batches through a shard, its state encoded and decoded between them."""
    played = list(shard_runs((read_records(batch, feeds=feeds) for batch in records), RULES))
    blob = played[-1][0].encode()
    verdicts = [verdict for _, result in played for verdict in result.verdicts]
    return verdicts, Shard(coordinator=RULES, limits=ShardLimits(), blob=blob)


def _expired(log: LogBuilder, feeds: Sequence[str] = ("tap",)) -> list[tuple[str | None, int]]:
    verdicts, _ = _run([log.records], feeds)
    return sorted((v.member_id, v.time_ms) for v in verdicts if v.kind is Kind.MEMBER_EXPIRED)


def test_time_of_a_tapped_group_is_that_of_its_feed() -> None:
    """Whatever time its partition shows, nobody is expired before the feed's mark says that all was passed on."""
    log = LogBuilder()
    log.relay(T0 + 900, _beat(), T0)
    log.mark(T0 + 1_000, T0 + SESSION_MS - 1)
    log.tick(T0 + 100 * SESSION_MS)
    assert _expired(log) == []
    log.mark(T0 + 100 * SESSION_MS, T0 + SESSION_MS)
    assert _expired(log) == [("a", T0 + SESSION_MS)]


def test_feed_counts_in_its_partition_only() -> None:
    """A mark in another partition moves no time, and an event there is a reject, whatever the group's id hashes to."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0)
    log.mark(T0 + 1_000, T0 + 2 * SESSION_MS, partition=1)
    log.relay(T0 + 1_000, _beat("b"), T0, partition=1)
    rows = Packer("t", 1, feeds=("tap",)).pack(frame_of(log.records), ReadingsBuilder((), OUTAGE_MIN_MS))
    (rejects,) = [payload for _, kind, payload in rows if kind is PayloadKind.REJECTS]
    (reject,) = msgspec.json.decode(rejects, type=list[Reject])
    assert (reject.partition, reject.cause) == (1, RejectCause.BAD_FIELD)
    assert _expired(log) == []
    log.mark(T0 + 1_000, T0 + 2 * SESSION_MS)
    assert _expired(log) == [("a", T0 + SESSION_MS)]


@pytest.mark.parametrize("group", [str(number) for number in range(8)])
def test_growth_of_the_topic_means_nothing_to_a_feed(group: str) -> None:
    """Nothing of a new partition has been read, and it is the one of the group's id: its feed's marks are enough."""
    log = LogBuilder()
    log.tick(T0, partitions=1)
    log.relay(T0, _beat(group=group), T0)
    log.tick(T0 + 1_000, partitions=8)
    log.relay(T0 + 2_000, _beat(group=group), T0 + 2_000)
    log.mark(T0 + 20_000, T0 + 20_000)
    assert _expired(log) == [("a", T0 + 2_000 + SESSION_MS)]


def test_what_a_feed_missed_is_no_silence() -> None:
    """After a gap in what a feed passed on every session is whole again; who had run out before it is expired."""
    log = LogBuilder()
    log.relay(T0, _beat("early"), T0 - SESSION_MS)
    log.relay(T0, _beat("late"), T0)
    log.mark(T0 + 100, T0 + 100)
    back_ms = T0 + 20 * SESSION_MS
    log.mark(back_ms, back_ms, since_ms=back_ms - 500)
    assert _expired(log) == [("early", T0)]
    log.mark(back_ms + SESSION_MS, back_ms - 500 + SESSION_MS, since_ms=back_ms - 500)
    assert _expired(log) == [("early", T0), ("late", back_ms - 500 + SESSION_MS)]


def test_what_arrived_just_before_a_gap_takes_no_renewal_back() -> None:
    """A mark stays behind what was passed on: a heartbeat in the gap counts, and not against its member."""
    log = LogBuilder()
    log.relay(T0, _beat("a"), T0)
    log.mark(T0 + 100, T0 + 100)
    log.relay(T0 + 200, _beat("a"), T0 + 200)
    log.relay(T0 + 200, _beat("b"), T0 + 200)
    back_ms = T0 + 2 * SESSION_MS
    log.mark(back_ms, back_ms, since_ms=back_ms)
    log.mark(back_ms, back_ms + SESSION_MS - 1, since_ms=back_ms)
    assert _expired(log) == []
    log.mark(back_ms, back_ms + SESSION_MS, since_ms=back_ms)
    assert _expired(log) == [("a", back_ms + SESSION_MS), ("b", back_ms + SESSION_MS)]


def test_gap_expires_nobody_who_was_held_back() -> None:
    """Who was held back when the feed began to miss things may have been alive: nothing runs out before the gap."""
    log = LogBuilder()
    log.relay(T0, _beat("a"), T0)
    log.mark(T0 + 100, T0 + 2 * SESSION_MS, held={"g": T0 + 1_000})
    back_ms = T0 + 5 * SESSION_MS
    log.mark(back_ms, back_ms, since_ms=back_ms)
    assert _expired(log) == []


def test_untrusted_feed_is_rejected() -> None:
    """Times of a feed that the job is not set to trust are never believed; its events are kept as rejects."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="stranger")
    log.mark(T0, T0 + 100 * SESSION_MS, feed="stranger")
    verdicts, shard = _run([log.records])
    assert (verdicts, shard.member_count, shard.time.feeds) == ([], 0, [])
    rows = Packer("t", 1, feeds=("tap",)).pack(frame_of(log.records), ReadingsBuilder((), OUTAGE_MIN_MS))
    (rejects,) = [msgspec.json.decode(data, type=list[Reject]) for _, kind, data in rows if kind is PayloadKind.REJECTS]
    assert [reject.cause for reject in rejects] == [RejectCause.UNTRUSTED_FEED]


@pytest.mark.parametrize(
    "held", [{"g": 2**63}, {"g": 2**64}, {"g": -(2**63) - 1}, {"g": -1}, {str(at): T0 for at in range(HELD_MAX + 1)}]
)
def test_p6_a_mark_that_holds_back_what_cannot_be_is_refused_by_name(held: dict[str, int]) -> None:
    """A time that is none, or more groups than a feed may hold back, is a reject, to the audit, too; it ends no job."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0)
    log.mark(T0, T0 + 1, held={"g": T0, **{str(at): T0 for at in range(HELD_MAX - 1)}})
    _run([log.records])
    log.mark(T0 + 1, T0 + 2, held=held)
    _, shard = _run([log.records])
    assert shard.time.feeds[0].passed_ms == T0 + 1
    rows = Packer("t", 1, feeds=("tap",)).pack(frame_of(log.records), ReadingsBuilder((), OUTAGE_MIN_MS))
    (rejects,) = [msgspec.json.decode(data, type=list[Reject]) for _, kind, data in rows if kind is PayloadKind.REJECTS]
    assert [reject.cause for reject in rejects] == [RejectCause.UNKNOWN_TYPE]
    assert read_feed_mark(encode_mark(FeedWatermark("tap", T0, T0, held))) is None


def test_group_that_moves_to_a_new_feed_waits_for_its_first_mark() -> None:
    """What a feed passes on before its first mark keeps members alive: the other feed's marks expire nobody before."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(T0, T0, feed="one")
    log.relay(T0 + 5_000, _beat(), T0 + 5_000, feed="two")
    log.mark(T0 + 8_000, T0 + 8_000, feed="one")
    feeds = ("one", "two")
    assert _expired(log, feeds) == []
    log.mark(T0 + 12_000, T0 + 12_000, feed="one")
    assert _expired(log, feeds) == []
    log.mark(T0 + 12_100, T0 + 8_000, feed="two")
    assert _expired(log, feeds) == []
    log.mark(T0 + 12_200, T0 + 11_500, feed="two")
    assert _expired(log, feeds) == [("a", T0 + 5_000 + SESSION_MS)]


def test_load_in_what_its_own_feed_missed_shortens_nothing() -> None:
    """A broker loads a group once more: what was sent to it until the gap's end nobody knows."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="one")
    for feed in ("one", "two"):
        log.mark(T0 + 100, T0 + 100, feed=feed)
    log.relay(T0 + 1_000, Event(group_id="g", type=EventType.LOAD), T0 + 1_000, feed="two")
    log.mark(T0 + 1_500, T0 + 1_500, feed="two")
    log.relay(T0 + 20_000, Event(group_id="g", type=EventType.LOAD), T0 + 5_000, feed="two")
    for feed in ("one", "two"):
        log.mark(T0 + 40_000, T0 + 40_000, since_ms=T0 + 20_000, feed=feed)
    assert _expired(log, ("one", "two")) == [("a", T0 + 20_000 + SESSION_MS)]


def test_group_that_is_forgotten_amidst_a_gap_begins_anew_like_one_never_seen() -> None:
    """What its feed has missed is over for it: a record from before the gap's end counts at its own time."""
    log = LogBuilder()
    forgotten_ms = T0 + SESSION_MS + RULES.empty_group_retention_ms
    log.relay(T0, _beat(), T0)
    log.mark(forgotten_ms, forgotten_ms - 500)
    log.relay(forgotten_ms + 5_000, _beat("b"), forgotten_ms + 1_000)
    log.mark(forgotten_ms + 60_000, forgotten_ms + 60_000, since_ms=forgotten_ms + 5_000)
    assert _expired(log, ("tap",)) == [("a", T0 + SESSION_MS), ("b", forgotten_ms + 1_000 + SESSION_MS)]


def test_group_without_members_is_forgotten_together_with_its_feeds() -> None:
    """It was unloaded by one broker and loaded by another before a member was seen: it begins with the other one."""
    log, again_ms = LogBuilder(), T0 + 1_000 + SESSION_MS + 1
    for feed in ("one", "two"):
        log.mark(T0, T0, feed=feed)
    log.relay(T0, Event(group_id="g", type=EventType.UNLOAD), T0 + 100, feed="one")
    log.relay(T0, Event(group_id="g", type=EventType.LOAD), T0 + 200, feed="two")
    for feed in ("one", "two"):
        log.mark(T0 + 300, T0 + 300, feed=feed)
    cut = len(log.records)
    for at_ms in (T0 + 1_000, again_ms):
        log.relay(again_ms, _beat(), at_ms, feed="two")
    log.mark(again_ms, again_ms + 1, feed="two")
    verdicts, _ = _run([log.records[:cut], log.records[cut:]], ("one", "two"))
    expired = [(v.member_id, v.time_ms) for v in verdicts if v.kind is Kind.MEMBER_EXPIRED]
    assert expired == [("a", T0 + 1_000 + SESSION_MS)]


def test_group_that_moves_on_forgets_brokers_that_it_has_left() -> None:
    """What counts is the coordinator before: one that was left earlier, and is gone, puts nothing off."""
    log = LogBuilder()
    feeds = ("one", "two", "three")
    log.relay(T0, _beat("a"), T0, feed="one")
    for feed in feeds:
        log.mark(T0 + 100, T0 + 100, feed=feed)
    log.relay(T0 + 200, Event(group_id="g", type=EventType.LOAD), T0 + 200, feed="two")
    log.relay(T0 + 1_000, _beat("dead"), T0 + 1_000, feed="two")
    for at_ms in range(T0 + 1_000, T0 + 2 * FEED_CLOSED_MS, 5_000):
        log.relay(at_ms, _beat("alive"), at_ms, feed="two")
        for feed in feeds[1:]:
            log.mark(at_ms, at_ms + 1, feed=feed)
    first = [("a", T0 + 200 + SESSION_MS), ("dead", T0 + 1_000 + SESSION_MS)]
    assert _expired(log, feeds) == first
    last_ms = T0 + 2 * FEED_CLOSED_MS
    log.relay(last_ms, _beat("late"), last_ms - SESSION_MS - 1, feed="two")
    log.relay(last_ms, Event(group_id="g", type=EventType.LOAD), last_ms, feed="three")
    for feed in feeds[1:]:
        log.mark(last_ms + 1, last_ms + 1, feed=feed)
    assert _expired(log, feeds) == [*first, ("late", last_ms - 1)]


def test_p1_what_a_gone_feed_had_written_counts() -> None:
    """A feed dies between what it wrote and its mark: once it is waited for no longer, what it wrote is not lost."""
    log = LogBuilder()
    feeds = ("one", "two")
    for feed in feeds:
        log.relay(T0, _beat(), T0 + feeds.index(feed), feed=feed)
        log.mark(T0, T0 + 10, feed=feed)
    log.relay(T0, _beat(), T0 + 5_000, feed="two")
    log.mark(T0 + FEED_CLOSED_MS, T0 + 30_000, feed="one")
    assert _expired(log, feeds) == []
    log.mark(T0 + FEED_CLOSED_MS + 1, T0 + 30_000, feed="one")
    assert _expired(log, feeds) == [("a", T0 + 5_000 + SESSION_MS)]


def test_p5_a_gone_feed_holds_nobody_back() -> None:
    """A feed dies while it holds a group back that another feed has, too: once it is gone the group goes on."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="two")
    log.mark(T0, T0 + 200, held={"g": T0 + 100}, feed="two")
    log.relay(T0 + 5_000, _beat(), T0 + 5_000, feed="one")
    feeds = ("one", "two")
    log.mark(T0 + FEED_CLOSED_MS, T0 + 30_000, feed="one")
    assert _expired(log, feeds) == []
    log.mark(T0 + FEED_CLOSED_MS + 1, T0 + 30_000, feed="one")
    assert _expired(log, feeds) == [("a", T0 + 5_000 + SESSION_MS)]


def test_p3_how_far_ahead_a_feed_is_does_not_depend_on_the_cut() -> None:
    """A time is believed so far beyond its own record's append time, not beyond what the batch has shown before it."""
    log = LogBuilder()
    log.tick(T0 + 4_000)
    log.relay(T0, _beat(), T0 + 10**9)
    log.mark(T0 + 10_000, T0 + 10**9)
    at_once, _ = _run([log.records])
    apart, _ = _run([[record] for record in log.records])
    assert at_once == apart
    assert [v.time_ms for v in at_once if v.kind is Kind.MEMBER_EXPIRED] == [T0 + AHEAD_MS_MAX + SESSION_MS]


def test_p4_what_waits_of_a_feed_keeps_its_place() -> None:
    """Of one millisecond the log's order counts, also where the records waited in the state for their mark."""
    log = LogBuilder()
    log.mark(T0, T0)
    log.relay(T0, _beat("a"), T0 + 3_000)
    log.relay(T0, _beat("b"), T0 + 1_000)
    log.relay(T0, Event(type=EventType.LEAVE, group_id="g", member_id="a"), T0 + 3_000)
    log.mark(T0 + 3_000, T0 + 4_000)
    at_once, _ = _run([log.records])
    apart, shard = _run([log.records[:3], log.records[3:]])
    assert by_group(apart) == by_group(at_once)
    assert shard.member_count == 1


def test_p6_a_feed_that_tells_of_long_ago_ends_no_job() -> None:
    """Times of records that wait may be further apart than a pack spans."""
    log = LogBuilder()
    log.relay(T0, _beat("a"), T0)
    log.relay(T0, _beat("b"), 0)
    _, shard = _run([log.records, []])
    assert shard.waiting_count == 2
    log.mark(T0, T0 + 1)
    verdicts, _ = _run([log.records[:2], log.records[2:]])
    assert [v.time_ms for v in verdicts if v.kind is Kind.MEMBER_EXPIRED] == [SESSION_MS]


def _script(dice: Random) -> list[tuple[int, Event]]:
    now, events = T0, []
    for _ in range(dice.randint(1, 40)):
        now += dice.choice([0, 1, 100, 900, 2_000, 6_000])
        kind = dice.choice([EventType.HEARTBEAT] * 4 + [EventType.JOIN, EventType.SYNC, EventType.LEAVE])
        fields: dict[str, object] = {"type": kind, "group_id": dice.choice("gh"), "member_id": dice.choice("abc")}
        if kind in {EventType.HEARTBEAT, EventType.SYNC}:
            fields["generation_id"] = dice.choice([-1, -1, 0, 1, 2])
        if kind is EventType.HEARTBEAT:
            fields["session_timeout_ms"] = dice.choice([1_000, 4_000])
        if kind is EventType.JOIN:
            fields |= {
                "session_timeout_ms": 4_000,
                "rebalance_timeout_ms": 3_000,
                "protocol_type": "consumer",
                "protocols": (Protocol("range", "x"),),
            }
        events.append((now, Event(**fields)))  # type: ignore[arg-type]  # fields by name, checked when it is decoded
    return events


def _reference(events: list[tuple[int, Event]], end_ms: int) -> list[Verdict]:
    verdicts: list[Verdict] = []
    machines = {group: GroupMachine(Group(group_id=group), RULES, verdicts.append) for group in "gh"}
    for at_ms, event in events:
        machines[event.group_id].apply(event, at_ms)
    for machine in machines.values():
        machine.advance(end_ms)
    return verdicts


def test_verdicts_depend_on_what_happened_alone() -> None:
    """In whatever order a feed passes events on between its marks, however late, and wherever batches are cut."""
    for seed in range(SEEDS // 3):
        dice = Random(seed)
        events = _script(dice)
        end_ms = events[-1][0] + 60_000
        log, append_ms, rest = LogBuilder(), T0 + 5, list(events)
        while rest:
            passed_ms = rest[0][0] + dice.choice([1, 500, 5_000])
            part = [each for each in rest if each[0] < passed_ms]
            rest = rest[len(part) :]
            groups = {
                event.group_id: [each for each in part if each[1].group_id == event.group_id] for _, event in part
            }
            waiting = [(at_ms, at, event) for mine in groups.values() for at, (at_ms, event) in enumerate(mine)]
            if len({at_ms for at_ms, _, _ in waiting}) == len(waiting):  # who came first in one ms only the order says
                dice.shuffle(waiting)
            for at_ms, _, event in waiting:
                log.relay(append_ms := append_ms + dice.choice([0, 3, 7_000]), event, at_ms)
            log.mark(append_ms, passed_ms)
        log.mark(append_ms + 60_000, end_ms)
        cuts = sorted(dice.sample(range(len(log.records) + 1), k=min(3, len(log.records))))
        bounds = [0, *cuts, len(log.records)]
        batches = [log.records[start:stop] for start, stop in pairwise(bounds)]
        verdicts, _ = _run(batches)
        assert by_group(verdicts) == by_group(_reference(events, end_ms)), seed


def test_records_of_a_feed_are_put_in_order_once() -> None:
    """What a step has put in the order of times, then of offsets, is not made anew by the next one."""

    def pack(at_ms: list[int], offsets: list[int]) -> Pack:
        names = [b"a", b"b", b"c"]
        times, places = np.array(at_ms, np.int64), np.array(offsets, np.int64)
        return Pack(-2, np.arange(3, dtype=np.int64), Bodies.of(names), np.arange(3), times, places)

    ordered = in_order_of_time([pack([3, 1, 3], [5, 6, 4])])
    assert [ordered.bodies[entry] for entry in ordered.entry.tolist()] == [b"b", b"c", b"a"]
    assert in_order_of_time([ordered]) is ordered
    assert in_order_of_time([one := pack([1, 1, 3], [5, 4, 6])]) is not one
    both = in_order_of_time([ordered, pack([0, 2, 9], [7, 8, 9])])
    assert (both.append_ms.tolist(), both.offset.tolist()) == ([0, 1, 2, 3, 3, 9], [7, 6, 8, 4, 5, 9])
    assert [both.bodies[entry] for entry in both.entry.tolist()] == [b"a", b"b", b"b", b"c", b"a", b"c"]
