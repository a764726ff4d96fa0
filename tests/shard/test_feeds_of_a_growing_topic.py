"""Feeds whose topic grows: their groups wait for them in the new partition as in the old one, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.time.feeds import FEED_GONE_MS
from heartwheel.engine.time.log_time import MOVED_MS_MAX
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, ProducedRecord, read_records
from heartwheel.wire.events import EventType
from heartwheel.wire.verdicts import Kind
from support.fed_growth import GROWN_MS, HEARD_MS, beat, beats, held_back, load, parts, write
from support.fed_logs import SESSION_MS
from support.heartbeat_logs import EXAMPLES, T0

RULES = CoordinatorConfig(group_min_session_timeout_ms=200, group_initial_rebalance_delay_ms=0)


def _expired(*batches: Sequence[ProducedRecord], counts: Sequence[int] = (1,)) -> list[tuple[str | None, int]]:
    """Run batches through a shard, its state encoded and decoded between them; list who was expired, ms after `T0`."""
    blob, found = "", []
    for batch in batches:
        shard = Shard(coordinator=RULES, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, counts=counts, blob=blob)
        verdicts = shard.apply(*read_records(batch, feeds=("one", "tap", "two"))).verdicts
        found += [(v.member_id, v.time_ms - T0) for v in verdicts if v.kind is Kind.MEMBER_EXPIRED]
        blob = shard.encode()
    return found


def test_p1_a_new_partition_is_waited_for_where_its_feed_goes_on() -> None:
    """P1: the old partition is read far beyond the growth, with all of its marks, and the living are in the other."""
    old, new = parts(write(LogBuilder(), beats(24_000), until_ms=40_000).records)
    assert _expired(old) == []
    assert _expired(old, new) == [("a", 24_000 + SESSION_MS)]


def test_p1_a_former_partition_is_waited_for_where_its_feed_was() -> None:
    """P1: what the new partition says is not applied before the old one is read; a silence there is no silence."""
    told = {0: beat(), 3_000: beat(), 15_000: beat("b"), 18_000: beat("b")}
    old, new = parts(write(LogBuilder(), told, until_ms=40_000).records)
    assert _expired(new, counts=(1, 2)) == []
    assert _expired(new, old, counts=(1, 2)) == [("a", 9_000), ("b", 24_000)]


@pytest.mark.parametrize("seed", range(min(EXAMPLES, 40)))
def test_p3_a_growth_is_told_alike_however_its_partitions_are_read(seed: int) -> None:
    """P3: batches end anywhere in each partition, and the verdicts are those of a log that is read at once."""
    dice, told = Random(seed), {}
    for at_ms in range(0, 30_000, 1_000):
        if dice.random() < 0.4:
            told[at_ms] = beat(dice.choice("abc"))
    log = write(LogBuilder(), told, until_ms=44_000)
    left, batches = list(parts(log.records)), []
    known = sum(record.append_ms <= T0 + GROWN_MS for record in left[0])
    batches.append([left[0].pop(0) for _ in range(known)])  # from then on the job knows of the growth
    while any(left):
        batch = []
        for part in left:
            size = dice.choice((0, 0, 1, 5, 60))
            batch += part[:size]
            del part[:size]
        if batch:
            batches.append(batch)
    assert _expired(*batches) == _expired(log.records)


def test_p1_what_a_feed_holds_back_in_the_new_partition_is_held_back() -> None:
    """P1: a hold goes with its group: the marks of the old partition do not tell of it any more."""
    log = held_back(LogBuilder())
    old, new = parts(log.records)
    assert _expired(log.records) == _expired(old) == _expired(old, new) == []
    log.mark(T0 + 30_000, T0 + 30_000)
    assert _expired(log.records) == []
    log.mark(T0 + 30_000, T0 + 30_000, partition=1)
    assert _expired(log.records) == [("a", 9_000 + SESSION_MS)]


def test_p2_a_feed_that_never_writes_to_a_new_partition_holds_its_groups_for_a_time() -> None:
    """P2: whoever writes to the topic has heard of it by then, and the ticks alone give the partition that time."""
    log = write(LogBuilder(), beats(9_000), until_ms=11_000)
    first_ms = T0 + GROWN_MS
    log.mark(first_ms + MOVED_MS_MAX, first_ms + MOVED_MS_MAX)
    log.tick(first_ms + MOVED_MS_MAX, partition=1, partitions=2)
    assert _expired(log.records[:-2], log.records[-2:]) == []
    log.tick(first_ms + 1_000 + MOVED_MS_MAX + 1, partition=1, partitions=2)
    assert _expired(log.records[:-3], log.records[-3:]) == [("a", 9_000 + SESSION_MS)]


def test_p2_a_feed_that_has_left_a_partition_is_not_waited_for_there() -> None:
    """P2: it knew of the new partition once, and writes to the old one alone from then on, as one that is replaced."""
    log = write(LogBuilder(), beats(18_000), until_ms=18_000)
    for at_ms in (18_000 + FEED_GONE_MS, 18_000 + FEED_GONE_MS + 1):
        assert _expired(log.records) == []
        log.mark(T0 + at_ms, T0 + at_ms)
        log.tick(T0 + at_ms, partition=1, partitions=2)
    assert _expired(log.records) == [("a", 18_000 + SESSION_MS)]


def test_p5_a_dead_feed_is_waited_for_in_both_partitions_or_in_neither() -> None:
    """P5: it dies between its marks; that one partition is read further than the other one makes no silence of that."""
    log = write(LogBuilder(), beats(18_000), until_ms=23_000)
    log.mark(T0 + 24_500, T0 + 24_500, partition=1)  # and none in the old one
    for partition in (0, 1):
        log.tick(T0 + 25_000 + FEED_GONE_MS, partition=partition, partitions=2)
    old, new = parts(log.records)
    assert _expired(log.records) == _expired(old, new) == _expired(old, new[:-1], new[-1:]) == []
    log.mark(T0 + 26_000 + FEED_GONE_MS, T0 + 24_000)
    assert _expired(log.records) == [("a", 18_000 + SESSION_MS)]


@pytest.mark.parametrize("tick_first", [False, True])
def test_p1_who_may_have_moved_to_a_broker_whose_feed_is_behind_in_the_new_partition_is_alive(
    *, tick_first: bool
) -> None:
    """P1: a group goes to another broker as the topic grows, whose feed tells of it where nothing is read yet."""
    log = LogBuilder()
    log.mark(T0, T0, feed="two")
    write(log, beats(9_000), until_ms=40_000, feed="one")
    write(log, beats(33_000, 12_000), from_ms=HEARD_MS, until_ms=40_000, feed="two", ticks=False)
    old, new = parts(log.records)
    ones = [record for record in new if b'"two"' not in (record.value or b"")]
    twos = [record for record in new if record not in ones]
    batches = [[*old, *ones], twos] if tick_first else [old, ones, twos]
    assert _expired(*batches[:-1]) == []
    assert _expired(*batches) == [("a", 33_000 + SESSION_MS)]


def test_p1_a_feed_that_goes_on_in_a_new_partition_is_no_other_coordinator() -> None:
    """P1: that a broker lets a group go stops its timers in either partition, and a load there is its own."""
    told = {0: beat(), 9_000: beat(), 13_000: load(EventType.UNLOAD), 30_000: load(), 33_000: beat()}
    log = write(LogBuilder(), told, until_ms=50_000)
    old, new = parts(log.records)
    assert _expired(log.records) == _expired(old, new) == [("a", SESSION_MS), ("a", 33_000 + SESSION_MS)]


def test_p5_what_a_feed_missed_while_its_topic_grew_is_no_silence() -> None:
    """P5: its marks say so in either partition; a group is renewed once everything before the gap has been read."""
    log = write(LogBuilder(), beats(18_000), until_ms=20_000)
    back_ms = T0 + 40_000
    for partition in (0, 1):
        log.mark(back_ms, back_ms, since_ms=back_ms - 500, partition=partition)
    for passed_ms in (back_ms - 500 + SESSION_MS - 1, back_ms - 500 + SESSION_MS):
        old, new = parts(log.records)
        assert _expired(log.records) == _expired(old, new) == _expired(new, old, counts=(1, 2)) == []
        for partition in (0, 1):
            log.mark(passed_ms, passed_ms, since_ms=back_ms - 500, partition=partition)
    old, new = parts(log.records)
    end = [("a", 40_000 - 500 + SESSION_MS)]
    assert _expired(log.records) == _expired(old, new) == _expired(new, old, counts=(1, 2)) == end
