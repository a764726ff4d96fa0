"""An outage is not silence: audit and engine find outages in the log, and start sessions anew after them."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.timed_logs import (
    CONFIG,
    INTERVAL_MS,
    OTHER_RUN,
    OUTAGE_MIN_MS,
    RUN,
    SESSION_MS,
    T0,
    Gone,
    TimedLog,
    audited,
    gone,
    group_at,
)
from heartwheel.proof.audit import Audit, AuditConfig, Report
from heartwheel.proof.audit.partitions import RESUME_MAX_MS
from heartwheel.wire.events import Event, EventType, Protocol
from support.heartbeat_logs import EXAMPLES

FROM_MS = 10_000
TO_MS = 30_000
END_MS = 90_000
STRICT = msgspec.structs.replace(CONFIG, judge_strays=True)
BOTH = msgspec.structs.replace(CONFIG, runs=(RUN, OTHER_RUN))

RENEWED = [Gone("a", TO_MS + SESSION_MS)]
NOT_RENEWED = [Gone("a", 9_900 + SESSION_MS)]


def _log(from_ms: int = FROM_MS, to_ms: int = TO_MS, *, run: str = RUN) -> TimedLog:
    """Write a log with a gap: ticks up to its begin, and those of a run from its end on."""
    log = TimedLog()
    log.ticks(from_ms % INTERVAL_MS, from_ms - INTERVAL_MS)
    log.beats("a", from_ms - 100)
    log.tick(from_ms)
    log.ticks(to_ms, END_MS, run=run)
    return log


# What is an outage


def test_p1_an_outage_is_no_silence() -> None:
    """P1: one run wrote just before and first after: nobody could write, so sessions start anew at the gap's end."""
    assert gone(_log()) == RENEWED
    assert audited(_log()).outages == 1


@pytest.mark.parametrize("interval_ms", [0, 1, 2**53 - 1])
def test_p1_a_forged_tick_of_the_jobs_own_run_hides_no_outage(interval_ms: int) -> None:
    """P1: no interval that a copied tick names takes anything from the evidence, or adds to it."""
    log = _log()
    log.tick(FROM_MS + 50, interval_ms=interval_ms)
    log.beats("b", FROM_MS + 100)
    log.sort()
    assert gone(log) == [*RENEWED, Gone("b", TO_MS + SESSION_MS)]
    quiet = TimedLog()
    quiet.tick(FROM_MS - 2_000, interval_ms=interval_ms)
    quiet.beats("a", FROM_MS - 100)
    quiet.ticks(TO_MS, END_MS)
    assert gone(quiet) == NOT_RENEWED
    alone = TimedLog()
    alone.beats("a", FROM_MS - 100)
    alone.tick(FROM_MS - 50, interval_ms=interval_ms)
    alone.ticks(TO_MS, END_MS)
    assert gone(alone) == RENEWED


@pytest.mark.parametrize("config", [CONFIG, BOTH])
def test_p5_another_run_after_the_gap_renews_nothing(config: AuditConfig) -> None:
    """P5: a job that was restarted was not there to see whether anybody could write; its deadlines stand."""
    assert gone(_log(run=OTHER_RUN), config) == NOT_RENEWED


def test_p5_restarting_again_and_again_renews_nothing() -> None:
    """P5: ten restarts, each with a gap, each by a run of its own, keep nobody alive."""
    log = TimedLog()
    log.beats("a", 0)
    for number in range(10):
        log.ticks(4_000 * number + 200, 4_000 * number + 600, run=f"{number:016x}")
    assert gone(log, msgspec.structs.replace(CONFIG, runs=tuple(f"{number:016x}" for number in range(10)))) == [
        Gone("a", SESSION_MS)
    ]


@pytest.mark.parametrize(("length_ms", "outages"), [(OUTAGE_MIN_MS, 0), (OUTAGE_MIN_MS + 1, 1)])
def test_a_gap_is_longer_than_the_least_outage(length_ms: int, outages: int) -> None:
    """A pause of `outage_min_ms` is none yet, one of a millisecond more is."""
    assert audited(_log(FROM_MS, FROM_MS + length_ms)).outages == outages


@pytest.mark.parametrize(("quiet_ms", "renewed"), [(OUTAGE_MIN_MS // 2, True), (OUTAGE_MIN_MS // 2 + 1, False)])
def test_the_tick_before_is_at_most_half_of_the_least_outage_old(quiet_ms: int, *, renewed: bool) -> None:
    """A ticker that had been silent for longer than that had died before: that is no outage."""
    log = TimedLog()
    log.tick(FROM_MS - quiet_ms)
    log.beats("a", FROM_MS)
    log.ticks(TO_MS, END_MS)
    assert audited(log).outages == renewed


def test_the_tick_before_is_timed_by_its_own_append_time() -> None:
    """Effective time stands while a new leader's clock is behind; a ticker that stopped then has died all the same."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.tick(5_000)
    log.beats("b", 7_000)
    log.ticks(TO_MS, END_MS)
    assert audited(log).outages == 0


@pytest.mark.parametrize(("after_ms", "outages"), [(0, 1), (RESUME_MAX_MS, 1), (RESUME_MAX_MS + 1, 0)])
def test_the_tick_after_comes_within_ten_seconds(after_ms: int, outages: int) -> None:
    """The run must write again at most `RESUME_MAX_MS` after the gap, though others may have written before it."""
    log = TimedLog()
    log.tick(FROM_MS)
    for at_ms in range(TO_MS, TO_MS + after_ms, 1_000):
        log.beats("a", at_ms)
    log.tick(TO_MS + after_ms)
    log.tick(TO_MS + after_ms + 200)
    assert audited(log).outages == outages


@pytest.mark.parametrize("config", [CONFIG, BOTH])
@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
def test_p1_an_outage_is_known_though_another_driver_ticks(config: AuditConfig, *, before: bool, after: bool) -> None:
    """P1: another driver, or a copied tick, last before the gap or first after it takes nothing from the evidence."""
    log = TimedLog()
    log.ticks(0, FROM_MS - INTERVAL_MS)
    log.beats("a", FROM_MS - 100)
    log.tick(FROM_MS)
    if before:
        log.tick(FROM_MS, run=OTHER_RUN)
    if after:
        log.tick(TO_MS, run=OTHER_RUN)
    log.ticks(TO_MS + 100, END_MS)
    assert gone(log, config)[:1] == [Gone("a", (TO_MS if after else TO_MS + 100) + SESSION_MS)]


def test_p5_runs_that_lived_on_one_side_of_a_gap_prove_nothing() -> None:
    """P5: the run before has ended, the one after it is new, and another had stopped ticking long before the gap."""
    log = _log(run=OTHER_RUN)
    log.tick(FROM_MS - OUTAGE_MIN_MS, run="third")
    log.tick(TO_MS + 100, run="third")
    log.sort()
    assert gone(log, msgspec.structs.replace(CONFIG, runs=(RUN, OTHER_RUN, "third"))) == NOT_RENEWED


@pytest.mark.parametrize("run", [OTHER_RUN, ""])
def test_ticks_of_unknown_runs_prove_nothing(run: str) -> None:
    """Anybody can write ticks: those of a run that is not the job's renew nothing, and do not hinder either."""
    ours = msgspec.structs.replace(CONFIG, runs=(RUN,))
    log = TimedLog()
    log.beats("a", FROM_MS - 100)
    log.tick(FROM_MS, run=run)
    log.ticks(TO_MS, END_MS, run=run)
    assert gone(log, ours) == NOT_RENEWED
    log = TimedLog()
    log.beats("a", FROM_MS - 100)
    log.tick(FROM_MS)
    log.tick(FROM_MS, run=run)
    log.tick(TO_MS, run=run)
    log.ticks(TO_MS, END_MS)
    assert gone(log, ours) == RENEWED


def test_an_anonymous_tick_gives_time_and_proves_nothing() -> None:
    """A tick without its fields ends a gap as any record does, and is none of the run's."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.tick(FROM_MS)
    log.add(T0 + TO_MS, b'{"type":"tick"}')
    log.add(T0 + TO_MS + RESUME_MAX_MS + 1, b'{"type":"tick"}')
    assert gone(log) == NOT_RENEWED


@pytest.mark.parametrize("lived_ms", [20_000, 200])
def test_a_clock_that_jumps_ahead_is_no_silence(lived_ms: int) -> None:
    """Whether Kafka was away or its clock jumped, which the ticker's monotonic time tells, nobody was silent."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.tick(FROM_MS, mono_ms=0)
    log.tick(TO_MS, mono_ms=lived_ms)
    log.ticks(TO_MS + 200, END_MS)
    assert gone(log) == RENEWED


# What an outage does


def test_what_had_ended_before_the_outage_has_fired() -> None:
    """A deadline at the last record before the gap is kept, one a millisecond later starts anew."""
    for session_ms, expected in ((2_000, Gone("a", FROM_MS)), (2_001, Gone("a", TO_MS + 2_001))):
        log = TimedLog()
        log.ticks(0, FROM_MS - INTERVAL_MS)
        log.beats("a", FROM_MS - 2_000, session_ms=session_ms)
        log.tick(FROM_MS)
        log.ticks(TO_MS, END_MS)
        log.sort()
        assert gone(log) == [expected]


def test_a_deadline_after_the_outage_starts_anew_too() -> None:
    """Whoever has a long session gets a whole one from the end of the outage on."""
    log = _log()
    log.beats("b", 9_000, session_ms=40_000)
    log.sort()
    assert Gone("b", TO_MS + 40_000) in gone(log)


def test_the_renewal_stands_before_the_first_record_after_the_gap() -> None:
    """Heartbeats come before the tick that proves the outage: they fire no deadline that was put off by it."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.beats("b", 9_950)
    log.tick(FROM_MS)
    log.beats("b", TO_MS, TO_MS + 100)
    log.tick(TO_MS + 250)
    log.ticks(TO_MS + 400, END_MS)
    assert gone(log) == [Gone("a", TO_MS + SESSION_MS), Gone("b", TO_MS + 100 + SESSION_MS)]


def test_until_the_tick_nothing_in_the_gap_is_decided() -> None:
    """While it is open who writes first, a gap's deadlines and the records after it are too early to judge."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.tick(FROM_MS)
    log.beats("b", TO_MS, TO_MS + RESUME_MAX_MS)
    assert gone(log) == []
    log.beats("b", TO_MS + RESUME_MAX_MS + 1)
    assert gone(log)[:1] == NOT_RENEWED


def test_two_outages_in_a_row_put_a_deadline_off_twice() -> None:
    """Each outage starts the sessions anew."""
    log = TimedLog()
    log.beats("a", 9_900)
    log.tick(FROM_MS)
    log.tick(FROM_MS + 5_000)
    log.tick(FROM_MS + 10_000)
    log.ticks(FROM_MS + 10_200, END_MS)
    assert gone(log) == [Gone("a", FROM_MS + 10_000 + SESSION_MS)]


@pytest.mark.parametrize("ahead", [0, 1])
def test_p3_both_outages_that_one_tick_proves_renew_whichever_partition_is_read_ahead(ahead: int) -> None:
    """P3: no timer runs between two outages before the second is known, although the group's time is beyond both."""
    moved = group_at(1, partitions=2)
    log = TimedLog()
    log.beats("a", 0, group_id=moved)
    log.ticks(200, END_MS, partitions=2)
    log.tick(0, partition=1, partitions=2)
    # The new leader's clock is behind, so the tick is still next to the records before the second gap.
    log.beats("a", 1, 3_002, 2, 11_002, group_id=moved, partition=1)
    log.ticks(11_002, END_MS, partition=1, partitions=2)
    # The group is known in both partitions from the beginning; then one is read to its end, and the other after it.
    order = sorted(log.records, key=lambda record: (record.offset > 0, record.partition != ahead, record.offset))
    audit = Audit(STRICT)
    for record in order:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    report = audit.finish()
    assert report.outages == 2
    assert _times(report, "expired session_timeout") == [11_002 + SESSION_MS]
    assert set(report.findings) == set(audited(log, STRICT).findings)


def test_an_outage_touches_the_groups_of_its_partition_alone() -> None:
    """A group in another partition, which could be written, has its deadline as ever."""
    log = TimedLog()
    here, there = group_at(0, partitions=2), group_at(1, partitions=2)
    for partition, group in ((0, here), (1, there)):
        log.tick(9_800, partition=partition, partitions=2)
        log.beats("ab"[partition], 9_900, group_id=group, partition=partition)
    log.tick(FROM_MS, partitions=2)
    log.ticks(TO_MS, END_MS, partitions=2)
    log.ticks(10_000, END_MS, partition=1, partitions=2)
    assert gone(log) == [Gone("b", 9_900 + SESSION_MS), Gone("a", TO_MS + SESSION_MS)]


def test_of_a_group_in_two_partitions_nobody_is_expired_by_the_outage_of_one() -> None:
    """A record in the partition that could be written fires no deadline of somebody who writes to the other one."""
    group = group_at(1, partitions=2)
    log = TimedLog()
    log.beats("old", 9_900, group_id=group)
    log.tick(FROM_MS, partitions=2)
    log.beats("old", TO_MS + 100, group_id=group)
    log.ticks(TO_MS + 200, END_MS, partitions=2)
    log.tick(9_800, partition=1, partitions=2)
    log.beats("new", *range(9_900, END_MS, 2_000), group_id=group, partition=1)
    log.ticks(END_MS, END_MS, partition=1, partitions=2)
    assert gone(log, STRICT) == [Gone("old", TO_MS + 100 + SESSION_MS)]


def test_a_group_seen_in_a_partition_only_after_its_outage_is_not_renewed() -> None:
    """An outage is one of the groups that had been there before it."""
    group = group_at(1, partitions=2)
    log = TimedLog()
    log.beats("a", 9_900, group_id=group, partition=1)
    log.ticks(10_000, END_MS, partition=1, partitions=2)
    log.tick(FROM_MS, partitions=2)
    log.tick(TO_MS, partitions=2)
    log.beats("b", TO_MS + 1, group_id=group)
    log.ticks(TO_MS + 200, END_MS, partitions=2)
    assert Gone("a", 9_900 + SESSION_MS) in gone(log, STRICT)


def test_a_group_that_was_forgotten_before_the_outage_begins_again_without_it() -> None:
    """Whoever comes after the outage to a group that had been forgotten has a session of its own alone."""
    config = msgspec.structs.replace(CONFIG, empty_group_retention_ms=1_000)
    log = TimedLog()
    log.ticks(0, FROM_MS - INTERVAL_MS)
    log.beats("a", 0, session_ms=1_000)
    log.tick(FROM_MS)
    log.beats("b", TO_MS + 100)
    log.ticks(TO_MS + 200, END_MS)
    log.sort()
    assert gone(log, config) == [Gone("a", 1_000), Gone("b", TO_MS + 100 + SESSION_MS)]


def _join(member_id: str, *, first: bool = False) -> Event:
    return Event(
        type=EventType.JOIN,
        group_id="g",
        member_id="" if first else member_id,
        assigned_member_id=member_id if first else None,
        session_timeout_ms=6_000,
        rebalance_timeout_ms=15_000,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
    )


def _times(report: Report, words: str) -> list[int]:
    found = [one for one in report.findings if words in one.detail]
    return sorted((one.time_ms or 0) - T0 for one in found)


def test_a_pending_member_and_the_first_join_phase_start_anew() -> None:
    """Who was given an id has its whole session to join with it, and the initial delay runs again."""
    log = TimedLog()
    log.ticks(0, FROM_MS - INTERVAL_MS)
    log.event(FROM_MS - 20, _join("a", first=True))
    log.event(FROM_MS - 10, _join("a"))
    log.event(FROM_MS - 5, _join("p", first=True))
    log.tick(FROM_MS)
    log.ticks(TO_MS, END_MS)
    report = audited(log)
    assert _times(report, "expired pending_timeout") == [TO_MS + 6_000]
    # The initial delay of 3 s, which nobody extended; then the member that it had parked has a session.
    assert _times(report, "Stabilized group g generation 1") == [TO_MS + 3_000]
    assert _times(report, "expired session_timeout") == [TO_MS + 3_000 + 6_000]


def test_the_time_for_syncs_starts_anew_with_that_of_the_group_now() -> None:
    """Whoever has not synced gets the whole rebalance timeout after the outage."""
    log = TimedLog()
    log.event(0, _join("a", first=True))
    log.event(10, _join("a"))
    log.ticks(200, FROM_MS)
    for at_ms in (4_000, 9_000):
        log.event(at_ms, Event(type=EventType.HEARTBEAT, group_id="g", member_id="a", generation_id=1))
    log.ticks(TO_MS, END_MS)
    for at_ms in range(TO_MS, TO_MS + 15_000, 3_000):
        log.event(at_ms, Event(type=EventType.HEARTBEAT, group_id="g", member_id="a", generation_id=1))
    log.sort()
    assert _times(audited(log), "sync_timeout") == [TO_MS + 15_000]


# However it is read


@st.composite
def _logs(draw: st.DrawFn) -> TimedLog:
    """Draw logs of a group that moves between two partitions, and one that does not, with ticks that stop or lie."""
    log, now = TimedLog(), 1
    still, moving = group_at(0, partitions=2), group_at(1, partitions=2)
    log.beats("a", 0, group_id=moving, partition=0)
    log.tick(0, partition=1, partitions=2)
    for _ in range(draw(st.integers(1, 40))):
        now += draw(st.sampled_from([0, 0, 1, 200, 200, 400, 1_000, 3_001, 8_000, 10_001]))
        back, partition = draw(st.sampled_from([0, 0, 0, 7, 3_000])), draw(st.integers(0, 1))
        if draw(st.booleans()):
            run = draw(st.sampled_from([RUN, RUN, RUN, OTHER_RUN, "", "ff"]))
            log.tick(max(0, now - back), partition=partition, partitions=2, run=run)
        else:
            member = draw(st.sampled_from("abc"))
            group = moving if partition == 1 else draw(st.sampled_from([still, moving]))
            log.beats(member, max(0, now - back), group_id=group, partition=partition)
    return log


@given(_logs(), st.randoms(use_true_random=False), st.sampled_from([CONFIG, BOTH]), st.booleans())
@settings(max_examples=max(20, EXAMPLES // 2))
def test_p3_verdicts_do_not_depend_on_how_partitions_are_read(
    log: TimedLog,
    dice: random.Random,
    config: AuditConfig,
    cut: bool,  # noqa: FBT001 - drawn
) -> None:
    """P3: read in whatever step, cut and carried on anywhere, the audit comes to the same verdicts."""
    strict = msgspec.structs.replace(config, judge_strays=True)
    rest = [[record for record in log.records if record.partition == number] for number in (0, 1)]
    audit = Audit(strict)
    for part in rest:  # the group that moves is in the first partition from the beginning, and at home in the second
        record = part.pop(0)
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    while any(rest):
        part = dice.choice([part for part in rest if part])
        record = part.pop(0)
        audit.event(record.append_ms, record.partition, record.offset, record.value)
        if cut and dice.random() < 0.2:
            audit = Audit(strict, snapshot=audit.snapshot())
    assert set(audit.finish().findings) == set(audited(log, strict).findings)
