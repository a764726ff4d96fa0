"""Records that carry their producer's time: they keep members alive, and no time passes by them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.shard.batch import BatchResult
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.time import ReadingsBuilder
from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.proof.audit import Audit, AuditConfig, FindingKind, in_log_order
from heartwheel.proof.testing import (
    OUTAGE_MIN_MS,
    RUN,
    LogBuilder,
    ProducedRecord,
    Read,
    by_group,
    frame_of,
    read_records,
    until,
)
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.relayed import AHEAD_MS_MAX
from heartwheel.wire.verdicts import Verdict
from support.heartbeat_logs import EXAMPLES, T0
from support.log_time_reference import run_reference
from support.shard_runs import shard_runs

SESSION_MS = 6_000
CONFIG = CoordinatorConfig(group_min_session_timeout_ms=1)
AUDITED = AuditConfig(group_min_session_timeout_ms=1, outage_min_ms=OUTAGE_MIN_MS, runs=(RUN,), tick_ms=1)


def _log(*records: tuple[int | None, str]) -> LogBuilder:
    """Write heartbeats, and ticks of nobody; times are ms after `T0`, of those without an append time `None`."""
    log = LogBuilder()
    for at_ms, member_id in records:
        append_ms = UNTIMED_MS if at_ms is None else T0 + at_ms
        if member_id:
            log.beat(append_ms, "g", member_id, session_timeout_ms=SESSION_MS)
        else:
            log.tick(append_ms, run="nobody")
    return log


def _batches(log: LogBuilder, cuts: tuple[int, ...] = ()) -> list[list[ProducedRecord]]:
    return [log.records[start:stop] for start, stop in pairwise((0, *cuts, len(log.records)))]


def _run(batches: list[list[ProducedRecord]], clock_ms: int = 0) -> list[BatchResult]:
    """Run a shard, its state coded between batches; with a clock up to a last tick there."""
    reads = [*map(read_records, batches), *([Read([], until(T0 + clock_ms))] if clock_ms else [])]
    return [result for _, result in shard_runs(reads, CONFIG)]


def _expired(results: list[BatchResult]) -> list[tuple[str | None, int]]:
    verdicts = [verdict for result in results for verdict in result.verdicts]
    return [(v.member_id, v.time_ms - T0) for v in verdicts if v.kind.value == "member_expired"]


def _audited(log: LogBuilder) -> list[tuple[str | None, int]]:
    audit = Audit(AUDITED)
    for record in in_log_order([log.records]):
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    found = audit.finish().findings
    missed = [one for one in found if one.kind is FindingKind.MISSED and one.detail.startswith("expired")]
    return [(one.member_id, (one.time_ms or 0) - T0) for one in missed]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,), (1, 2, 3, 4)])
def test_p1_who_beats_without_append_times_has_a_whole_session_when_time_goes_on(cuts: tuple[int, ...]) -> None:
    """P1: how long records without append times took is not known: nobody who lived before them is expired by that."""
    log = _log((0, "a"), (100, "b"), (None, "a"), (40_000, ""), (40_000 + SESSION_MS - 1, ""))
    assert _expired(_run(_batches(log, cuts))) == _audited(log) == []
    log.tick(T0 + 40_000 + SESSION_MS, run="nobody")
    assert _expired(_run(_batches(log, cuts))) == _audited(log) == [("a", 46_000), ("b", 46_000)]


def test_p1_the_time_of_a_producer_expires_nobody() -> None:
    """P1: the clocks of producers, which may be years ahead, have no part in it, and do not stop verdicts for good."""
    log = _log((0, "a"), (1_000, "b"), *[(None, "b")] * 7, (2_000, "a"), (3_000, ""), (8_000, ""), (8_001, ""))
    assert _expired(_run(_batches(log))) == _audited(log) == [("a", 8_000), ("b", 8_000)]


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (3,)])
def test_p1_a_partition_begins_with_its_first_append_time(cuts: tuple[int, ...]) -> None:
    """P1: what stands before it is of no known time, as if it had been deleted; it expires nobody and says nothing."""
    log = _log((None, "a"), (None, "a"), (0, "b"), (SESSION_MS, ""))
    results = _run(_batches(log, cuts))
    assert _expired(results) == _audited(log) == [("b", SESSION_MS)]
    assert sum(result.counts["records_unplaced"] for result in results) == 2


def test_p3_heartbeats_before_the_first_append_time_may_come_again_without_their_bytes() -> None:
    """P3: what was left out as it had no place is known to the shard when the packer sends no bytes of it."""
    log = _log((None, "a"), (0, "a"), (SESSION_MS, ""))
    packer, reads = Packer("consumer-heartbeats", 1), []
    for number, record in enumerate(log.records):
        readings = ReadingsBuilder((), OUTAGE_MIN_MS)
        packer.begin(BatchOf("query", number))
        packs = [decode_sent(data) for _, _, data in packer.pack(frame_of([record]), readings)]
        reads.append(Read(packs, readings.readings()))
    assert _expired([result for _, result in shard_runs(reads, CONFIG)]) == [("a", SESSION_MS)]


def test_p3_records_without_append_times_count_alike_however_they_are_read() -> None:
    """P3: verdicts are a function of the log, wherever in it times are missing, and wherever its batches are cut."""
    renewed = 0
    for seed in range(EXAMPLES // 3):
        dice = Random(seed)
        log, now = LogBuilder(), 0
        for _ in range(dice.randint(2, 40)):
            now += dice.choice([0, 1, 200, 1_000, 2_500, 3_001, 7_000])
            append_ms = UNTIMED_MS if dice.random() < 0.3 else T0 + now - dice.choice([0, 0, 0, 7, 3_400])
            log.beat(append_ms, dice.choice("gh"), dice.choice("abc"), session_timeout_ms=dice.choice([1_000, 4_000]))
        log.tick(T0 + now + 7_000, run="nobody")
        cuts = tuple(sorted(dice.sample(range(1, len(log.records)), k=min(3, len(log.records) - 1))))
        results = _run(_batches(log, cuts), now + 60_000)
        verdicts: list[Verdict] = [verdict for result in results for verdict in result.verdicts]
        expected = run_reference(log, clock_ms=T0 + now + 60_000, config=CONFIG)
        assert by_group(verdicts) == by_group(expected), seed
        renewed += sum(result.counts["outage_untimed"] for result in results)
    assert renewed > EXAMPLES // 3


def test_p1_feeds_say_their_own_time_in_records_without_append_times() -> None:
    """P1: an event counts at the time that its feed says; a mark in such a record says nothing, as the next does."""
    log = LogBuilder()

    def beat(append_ms: int, at_ms: int) -> None:
        event = Event(type=EventType.HEARTBEAT, group_id="g", member_id="a", session_timeout_ms=SESSION_MS)
        log.relay(append_ms, event, T0 + at_ms)

    beat(T0, 0)
    log.mark(T0, T0)
    beat(UNTIMED_MS, 5_000)
    log.mark(UNTIMED_MS, T0 + 10 * AHEAD_MS_MAX)
    log.mark(T0 + 10_000, T0 + 10_000)
    shard = Shard(coordinator=CONFIG, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    found = [shard.apply(*read_records(log.records, feeds=("tap",)))]
    assert _expired(found) == []
    log.mark(T0 + 11_000, T0 + 11_000)
    found.append(shard.apply(*read_records(log.records[-1:], feeds=("tap",))))
    assert _expired(found) == [("a", 11_000)]


def test_records_without_append_times_are_counted() -> None:
    """One shard counts each in its status row, whichever shard it was for."""
    log = _log((0, "a"), (None, "a"), (None, ""), (100, "a"))
    readings = read_records(log.records).readings
    assert [(each.untimed, each.regressed) for each in readings] == [(2, 0)]
