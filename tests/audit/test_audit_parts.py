"""What the audit knows, forgets, carries on with and puts aside."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.engine_runs import Rejected, audit_config, engine_run
from audit.rich_log import CONFIG, T0, rich_log
from heartwheel.proof.audit import Audit, AuditConfig, AuditStateError, FindingKind, in_log_order
from heartwheel.proof.audit.recent import Recent
from heartwheel.proof.audit.rules.java import buckets_for, spread_hash, walk
from heartwheel.proof.testing import LogBuilder, ProducedRecord
from support.heartbeat_logs import EXAMPLES

CLOCK_MS = T0 + 32_000
CLEAN = engine_run(rich_log(), clock_ms=CLOCK_MS, config=CONFIG, cuts=[40, 80, 120])


def _beats(log: LogBuilder, member: str, *times_ms: int, partition: int = 0, session_ms: int = 1_000) -> None:
    for time_ms in times_ms:
        log.beat(T0 + time_ms, "g", member, session_timeout_ms=session_ms, partition=partition)


# What it shares with the engine


def test_it_runs_without_the_engine() -> None:
    """The audit loads the schemas of records and rows, and no other module of the engine, at any depth."""
    script = "import heartwheel.proof.audit.run, heartwheel.proof.audit.files, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith(("heartwheel", "timing_wheel", "pyspark"))}
    ours = {name for name in loaded if name.startswith("heartwheel.proof.audit")}
    rows = ("events", "event_codec", "group_heartbeats", "relayed", "requests", "tick", "verdict_rows", "verdicts")
    wire = {"heartwheel.wire", *(f"heartwheel.wire.{module}" for module in rows)}
    rooms = {"heartwheel", "heartwheel.proof", "heartwheel.base"}
    assert loaded - ours == {*rooms, "heartwheel.base.errors", *wire}


@pytest.mark.parametrize(("text", "spread"), [("", 0), ("foo", 101574 ^ 1), ("polygenelubricants", 2**31 + 2**15)])
def test_strings_are_spread_as_java_does(text: str, spread: int) -> None:
    """Java's hash of a string, its upper half folded into the lower: values known from Kafka's own partitions."""
    assert spread_hash(text) == spread


def test_java_walks_by_bucket_and_grows_at_three_quarters() -> None:
    """The order of a hash map: by bucket, then as they came; twelve fit into sixteen buckets."""
    assert walk(["c", "b", "q"], 16) == ["q", "b", "c"]
    assert [buckets_for(n) for n in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
    assert buckets_for(1, 64) == 64


# Carrying on


@given(st.lists(st.integers(0, len(CLEAN.log.records)), max_size=3), st.integers(0, 2), st.booleans())
@settings(max_examples=max(5, EXAMPLES // 10))
def test_an_audit_that_is_cut_anywhere_comes_to_the_same(cuts: list[int], fault: int, rows_first: bool) -> None:  # noqa: FBT001 - drawn
    """Written down and carried on, at any record, any number of times, the report is the same to the letter."""
    run = CLEAN.copy()
    del run.written[fault * 7 : fault * 8]
    settled = {"late_ms_max": 1_000}
    whole = run.audit(rows_first=rows_first, **settled)
    audit = Audit(audit_config(CONFIG, **settled))
    for reject in run.rejected:
        audit.rejected(reject.partition, reject.offset, reject.cause)
    if rows_first:
        run.write_to(audit)
    for number, record in enumerate(run.log.records):
        if number in cuts:
            audit = Audit(audit.config, snapshot=audit.snapshot())
        audit.event(*(record.append_ms, record.partition, record.offset, record.value))
    run.let_time_pass(audit)
    if not rows_first:
        run.write_to(audit)
    assert audit.finish(CLOCK_MS) == whole


def test_a_report_in_between_changes_nothing() -> None:
    """An audit can be asked at any time: what it says then is not in what it says later."""
    run = CLEAN.copy()
    audit = Audit(audit_config(CONFIG))
    for record in run.log.records[:50]:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    assert audit.finish(T0 + 30_000).faults
    for reject in run.rejected:
        audit.rejected(reject.partition, reject.offset, reject.cause)
    for record in run.log.records[50:]:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    run.let_time_pass(audit)
    run.write_to(audit)
    assert audit.finish(CLOCK_MS).ok


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (b"", "cannot be read"),
        (b"\x00" * 40, "cannot be read"),
        (Audit(AuditConfig(tick_ms=7)).snapshot(), "another tick_ms"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(snapshot: bytes, words: str) -> None:
    """A state that is broken, or of an audit under other rules, is refused by name and not carried on."""
    with pytest.raises(AuditStateError, match=words):
        Audit(AuditConfig(), snapshot=snapshot)


def test_memory_is_bounded_by_what_lives() -> None:
    """Groups that are gone, and verdicts that were confirmed, leave nothing behind but a bounded memory of ids."""
    log, config = LogBuilder(), msgspec.structs.replace(audit_config(CONFIG), empty_group_retention_ms=1_000)
    for number in range(200):
        log.beat(T0 + 2_000 * number, f"g{number}", "m", session_timeout_ms=1_000)
    rules = dataclasses.replace(CONFIG, empty_group_retention_ms=config.empty_group_retention_ms)
    run = engine_run(log, clock_ms=T0 + 500_000, config=rules)
    audit = Audit(msgspec.structs.replace(config, remembered_max=10))
    sizes = []
    written = sorted(run.written, key=lambda each: each.row.deadline_ms or each.row.time_ms)  # type: ignore[union-attr]
    for record in log.records:
        while written and (time := getattr(written[0].row, "time_ms", written[0].row.deadline_ms)) is not None:
            if time > record.append_ms:
                break
            audit.written(written[0].row, 0, written[0].offset, record.append_ms)
            written.pop(0)
        audit.event(record.append_ms, record.partition, record.offset, record.value)
        sizes.append(len(audit.snapshot()))
    assert max(sizes[100:]) < 2 * max(sizes[20:40])


def test_recent_keeps_at_least_half_of_what_it_may() -> None:
    """The memory forgets the oldest half at once, says so, and never holds more than it may."""
    recent = Recent(size_max=10)
    for key in range(100):
        recent.add(key, key)
        assert all(recent.get(newer) == newer for newer in range(max(0, key - 4), key + 1))
        assert len(recent.young) + len(recent.old) <= 10
    assert recent.forgot == 90


def test_a_repetition_beyond_memory_is_not_called_false() -> None:
    """What may repeat a row that was confirmed and forgotten is counted as not judged: no fault is made up."""
    run = CLEAN.copy()
    run.append(run.written[0].row)
    report = run.audit(remembered_max=4)
    assert (report.faults, report.unjudged) == ({}, 1)


# What cannot be judged


def test_groups_older_than_the_log_are_not_judged() -> None:
    """Where the first records are gone, a group may have had members, generations and timers that nobody knows."""
    run = CLEAN.copy()
    config = audit_config(CONFIG)
    audit = Audit(config)
    audit.begins(0, T0 + 5_000)
    for record in run.log.records:
        if record.append_ms >= T0 + 5_000:
            audit.event(record.append_ms, record.partition, record.offset, record.value)
    for reject in run.rejected:
        audit.rejected(reject.partition, reject.offset, reject.cause)
    run.write_to(audit)
    report = audit.finish(CLOCK_MS)
    assert (report.faults, report.unjudged, report.confirmed) == ({}, len(run.written), 0)


def test_a_group_in_two_partitions_is_put_aside() -> None:
    """Nothing promises the order of records in several partitions: findings are counted apart, unless asked for."""
    log = LogBuilder()
    log.add(T0, b"garbage", partition=2)
    _beats(log, "a", 0, 500)
    _beats(log, "a", 900, 1_400, partition=1)
    run = engine_run(log, clock_ms=T0 + 9_000, config=CONFIG)
    run.written.pop()
    report = run.audit()
    assert (report.ok, report.faults, report.unsettled) == (True, {}, 1)
    assert run.audit(judge_strays=True).faults == {FindingKind.MISSED: 1}


def test_a_record_that_was_passed_over_keeps_nobody_alive() -> None:
    """What `heartwheel skip` made the job pass over counts for nothing in the audit either, and is counted apart."""
    log = LogBuilder()
    _beats(log, "a", 0, 500, 1_400)
    run = engine_run(log, clock_ms=T0 + 9_000, config=CONFIG)
    skipped = log.records.pop(1)
    written = engine_run(log, clock_ms=T0 + 9_000, config=CONFIG).written
    log.records.insert(1, skipped)
    run.written = written
    assert not run.audit().ok
    run.rejected.append(Rejected(skipped.partition, skipped.offset, "skipped"))
    report = run.audit()
    assert (report.faults, report.skipped, report.confirmed) == ({}, 1, len(written))


def test_garbage_that_was_passed_over_needs_no_reject_of_its_own() -> None:
    """A record that cannot be used, and was passed over by its offset, is rejected as that and nothing else."""
    run = CLEAN.copy()
    run.rejected[0] = Rejected(run.rejected[0].partition, run.rejected[0].offset, "skipped")
    report = run.audit()
    assert (report.faults, report.skipped) == ({}, 1)


def test_what_nobody_can_unpack_is_believed() -> None:
    """A reject of a record that the audit could not read is no forgery; one beside it is."""
    run = CLEAN.copy()
    last = max(record.offset for record in run.log.records if record.partition == 0)
    run.rejected.append(Rejected(0, last + 5, "too_large"))
    audit = Audit(audit_config(CONFIG))
    for first in (last + 4, last + 4):
        audit.unread(0, first, last + 5)
    for record in run.log.records:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    run.write_to(audit)
    for reject in run.rejected:
        audit.rejected(reject.partition, reject.offset, reject.cause)
    carried_on = Audit(audit.config, snapshot=audit.snapshot())
    report = carried_on.finish(CLOCK_MS)
    assert (report.faults, report.unread) == ({}, 2)
    carried_on.rejected(0, last + 6, "too_large")
    assert carried_on.finish(CLOCK_MS).faults == {FindingKind.REJECT_FORGED: 1}


def test_records_merge_by_time_and_keep_their_order() -> None:
    """Partitions merge by append time; where it steps back in one of them, its records keep their order."""
    one = [ProducedRecord(t, None, 0, offset) for offset, t in enumerate((10, 30, 20, 50))]
    two = [ProducedRecord(t, None, 1, offset) for offset, t in enumerate((10, 25, 40))]
    merged = [(r.partition, r.append_ms) for r in in_log_order([two, one])]
    assert merged == [(0, 10), (1, 10), (1, 25), (0, 30), (0, 20), (1, 40), (0, 50)]
