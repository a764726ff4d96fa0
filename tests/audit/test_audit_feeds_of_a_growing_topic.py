"""Feeds whose topic grows: the audit waits for them in every partition of a group, and derives the engine's rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from audit.engine_runs import Run, audit_config
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.proof.audit import Audit
from heartwheel.proof.audit.fed import GROWTH_KNOWN_WITHIN_MS, SILENT_AFTER_MS
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, ProducedRecord, read_records
from heartwheel.wire.events import EventType
from heartwheel.wire.verdict_rows import ExpirationRow, row_of
from heartwheel.wire.verdicts import topic_of
from support.fed_growth import GROWN_MS, beat, beats, held_back, load, parts, write
from support.fed_logs import SESSION_MS
from support.heartbeat_logs import T0

RULES = CoordinatorConfig(group_min_session_timeout_ms=200, group_initial_rebalance_delay_ms=0)
FEEDS = ("one", "tap", "two")


def _run(log: LogBuilder) -> Run:
    """Run a log through a shard: a batch up to where the topic grows, one of that moment, and all the rest at once."""
    run, blob = Run(log, RULES, T0), ""
    before, known = (sum(record.append_ms < T0 + ms for record in log.records) for ms in (GROWN_MS, GROWN_MS + 1))
    for batch in (log.records[:before], log.records[before:known], log.records[known:]):
        shard = Shard(coordinator=RULES, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, blob=blob)
        for verdict in shard.apply(*read_records(batch, feeds=FEEDS)).verdicts:
            if topic_of(verdict) is not None:
                run.append(row_of(verdict, shard=0, detected_ms=max(verdict.time_ms, shard.newest_ms)))
        blob = shard.encode()
    return run


def _expired(log: LogBuilder, records: Sequence[ProducedRecord] | None = None) -> list[tuple[str, int]]:
    """Audit what the engine wrote, reading records in a given order; list who was expired, ms after `T0`."""
    run = _run(log)
    config = audit_config(RULES, feeds=FEEDS, outage_min_ms=OUTAGE_MIN_MS, examples_max=1_000, tick_ms=1)
    audit = Audit(config)
    for number, record in enumerate(log.records if records is None else records):
        if number == len(log.records) // 2:
            audit = Audit(config, snapshot=audit.snapshot())
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    run.write_to(audit)
    report = audit.finish()
    assert (report.faults, report.confirmed, report.pending) == ({}, len(run.written), 0), report.findings
    rows = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    return [(row.member_id, row.deadline_ms - T0) for row in rows]


def _old_first(log: LogBuilder) -> list[ProducedRecord]:
    old, new = parts(log.records)
    return [*old, *new]


def test_d4_a_new_partition_is_waited_for_where_its_feed_goes_on() -> None:
    """D4: an audit that reads the old partition first, with all of its marks, expires nobody who lives in the other."""
    log = write(LogBuilder(), beats(24_000), until_ms=40_000)
    assert _expired(log) == _expired(log, _old_first(log)) == [("a", 24_000 + SESSION_MS)]


def test_d4_a_former_partition_is_waited_for_where_its_feed_was() -> None:
    """D4: what a feed tells in the new partition waits for its marks in the old one, which ticks have named."""
    told = {0: beat(), 3_000: beat(), 15_000: beat("b"), 18_000: beat("b")}
    log = write(LogBuilder(), told, until_ms=40_000)
    old, new = parts(log.records)
    ticks = [record for record in old if b"tick" in (record.value or b"")]
    begin = next(at for at, record in enumerate(old) if record not in ticks)
    order = [*old[:begin], *new, *old[begin:]]
    assert _expired(log) == _expired(log, order) == [("a", 9_000), ("b", 24_000)]


def test_d4_what_a_feed_holds_back_in_the_new_partition_is_held_back() -> None:
    """D4: a hold goes with its group: the marks of the old partition do not tell of it any more."""
    log = held_back(LogBuilder())
    assert _expired(log) == _expired(log, _old_first(log)) == []
    for partition in (0, 1):
        log.mark(T0 + 30_000, T0 + 30_000, partition=partition)
    assert _expired(log) == _expired(log, _old_first(log)) == [("a", 9_000 + SESSION_MS)]


def test_d4_a_feed_that_never_writes_to_a_new_partition_holds_its_groups_for_a_time() -> None:
    """D4: whoever writes to the topic has heard of it by then, and the ticks alone give the partition that time."""
    log = write(LogBuilder(), beats(9_000), until_ms=11_000)
    end_ms = T0 + GROWN_MS + GROWTH_KNOWN_WITHIN_MS
    log.mark(end_ms, end_ms)
    log.tick(end_ms, partition=1, partitions=2)
    assert _expired(log) == []
    log.tick(end_ms + 1, partition=1, partitions=2)
    assert _expired(log) == [("a", 9_000 + SESSION_MS)]


def test_d4_a_feed_that_has_left_a_partition_is_not_waited_for_there() -> None:
    """D4: it knew of the new partition once, and writes to the old one alone from then on."""
    log = write(LogBuilder(), beats(18_000), until_ms=18_000)
    for at_ms in (18_000 + SILENT_AFTER_MS, 18_000 + SILENT_AFTER_MS + 1):
        assert _expired(log) == []
        log.mark(T0 + at_ms, T0 + at_ms)
        log.tick(T0 + at_ms, partition=1, partitions=2)
    assert _expired(log) == [("a", 18_000 + SESSION_MS)]


def test_d4_a_dead_feed_is_waited_for_in_both_partitions_or_in_neither() -> None:
    """D4: it dies between its marks; that one partition is read further than the other one makes no silence of that."""
    log = write(LogBuilder(), beats(18_000), until_ms=23_000)
    log.mark(T0 + 24_500, T0 + 24_500, partition=1)
    for partition in (0, 1):
        log.tick(T0 + 25_000 + SILENT_AFTER_MS, partition=partition, partitions=2)
    assert _expired(log) == _expired(log, _old_first(log)) == []


@pytest.mark.parametrize("seen_by_both", [False, True])
def test_d4_who_may_have_moved_to_a_broker_whose_feed_is_behind_is_alive(*, seen_by_both: bool) -> None:
    """D4: a group of which nothing is heard waits for every feed in the new partition, or until that is gone."""
    log = LogBuilder()
    log.mark(T0, T0, feed="two")
    write(log, beats(9_000), until_ms=40_000, feed="one")
    assert _expired(log) == _expired(log, _old_first(log)) == []
    if seen_by_both:
        for partition in (0, 1):
            log.mark(T0 + 40_000, T0 + 40_000, feed="two", partition=partition)
    else:
        write(log, {}, from_ms=41_000, until_ms=SILENT_AFTER_MS + 2_000, feed="one")
    assert _expired(log) == _expired(log, _old_first(log)) == [("a", 9_000 + SESSION_MS)]


def test_d4_a_feed_that_goes_on_in_a_new_partition_is_no_other_coordinator() -> None:
    """D4: that a broker lets a group go stops its timers in either partition, and a load there is its own."""
    told = {0: beat(), 9_000: beat(), 13_000: load(EventType.UNLOAD), 30_000: load(), 33_000: beat()}
    log = write(LogBuilder(), told, until_ms=50_000)
    wanted = [("a", SESSION_MS), ("a", 33_000 + SESSION_MS)]
    assert _expired(log) == _expired(log, _old_first(log)) == wanted
