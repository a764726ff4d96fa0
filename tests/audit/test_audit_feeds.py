"""Groups that feeds pass on: the audit reads the feeds' marks by itself, and derives the very rows of the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec
import pytest

from audit.engine_runs import Run, audit_config, parts_of
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.audit import Audit, AuditConfig, Report
from heartwheel.proof.audit.fed import SILENT_AFTER_MS
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, read_records
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdict_rows import ExpirationRow
from support.fed_logs import LOADED_MS, SESSION_MS, broker_that_comes_back
from support.heartbeat_logs import SEEDS, T0

CONFIG = CoordinatorConfig(group_min_session_timeout_ms=200, group_initial_rebalance_delay_ms=0)
FEEDS = ("one", "two")


def _beat(member: str = "a", group: str = "g") -> Event:
    return Event(group_id=group, member_id=member, session_timeout_ms=SESSION_MS)


def _engine(log: LogBuilder, cuts: Sequence[int] = ()) -> Run:
    run = Run(log, CONFIG, T0)
    run.play(read_records(part, feeds=FEEDS) for part in parts_of(log, cuts))
    return run


def _audit(run: Run, *, rows_first: bool = False, cut: int | None = None, **fields: Any) -> Report:
    """Audit a run; with a cut the audit is written down and read again there."""
    settings: dict[str, Any] = {
        "feeds": FEEDS,
        "outage_min_ms": OUTAGE_MIN_MS,
        "examples_max": 1_000,
        "tick_ms": 1,
    } | fields
    config: AuditConfig = audit_config(run.config, **settings)
    audit = Audit(config)
    if rows_first:
        run.write_to(audit)
    for number, record in enumerate(run.log.records):
        if number == cut:
            audit = Audit(config, snapshot=audit.snapshot())
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    if not rows_first:
        run.write_to(audit)
    return audit.finish()


def _is_confirmed(run: Run, **how: Any) -> list[tuple[str, int]]:
    report = _audit(run, **how)
    assert (report.faults, report.confirmed, report.pending) == ({}, len(run.written), 0), report.findings
    rows = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    return sorted((row.member_id, row.deadline_ms - T0) for row in rows)


def _is_confirmed_at_any_cut(log: LogBuilder) -> list[tuple[str, int]]:
    """Return who is expired, wherever a batch ends."""
    (expired,) = {tuple(_is_confirmed(_engine(log, (cut,)))) for cut in range(len(log.records))}
    return list(expired)


def test_a_feed_that_lags_dies_and_comes_back() -> None:
    """The time of its groups is that of its marks: lag expires nobody, and what it missed is no silence."""
    log = LogBuilder()
    log.relay(T0 + 900, _beat("dead"), T0, feed="one")
    log.relay(T0 + 900, _beat("late"), T0 + 500, feed="one")
    log.mark(T0 + 1_000, T0 + 1_000, feed="one")
    log.tick(T0 + 90_000)
    assert _is_confirmed(_engine(log)) == []
    log.relay(T0 + 90_000, _beat("late"), T0 + 5_000, feed="one")
    log.mark(T0 + 90_000, T0 + 6_000, feed="one")
    assert _is_confirmed(_engine(log)) == [("dead", SESSION_MS)]
    log.mark(T0 + 100_000, T0 + 99_000, since_ms=T0 + 95_000, feed="one")
    log.relay(T0 + 100_000, _beat("late"), T0 + 94_000, feed="one")
    log.mark(T0 + 102_000, T0 + 101_000, since_ms=T0 + 95_000, feed="one")
    assert _is_confirmed(_engine(log)) == [("dead", SESSION_MS), ("late", 95_000 + SESSION_MS)]


@pytest.mark.parametrize("agreed", [0, 2])
@pytest.mark.parametrize("cut", [True, False])
def test_p1_a_rebalance_in_what_a_feed_missed_expires_nobody(agreed: int, *, cut: bool) -> None:
    """P1: after a gap a later generation is that of a rebalance that was missed, unless a member agreed since.

    Also by heartbeats that are known, which no rule looks at.
    """
    log = LogBuilder()
    joined: dict[str, Any] = {"group_id": "g", "protocol_type": "consumer", "api_version": 3}
    offer: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": 2_000,
        "protocols": (Protocol("range"),),
    }
    log.relay(T0, Event(type=EventType.JOIN, assigned_member_id="a", **joined, **offer), T0, feed="one")
    sync = Event(type=EventType.SYNC, member_id="a", generation_id=1, group_id="g")
    log.relay(T0 + 100, sync, T0 + 100, feed="one")
    for at_ms in (1_000, 2_000, 3_000):
        log.relay(T0 + at_ms, Event(group_id="g", member_id="a", generation_id=1), T0 + at_ms, feed="one")
    log.mark(T0 + 3_000, T0 + 3_000, feed="one")
    back_ms = T0 + 60_000
    log.mark(back_ms, back_ms, since_ms=back_ms, feed="one")
    for number in range(12):
        at_ms = back_ms + 1_000 * (number + 1)
        beat = Event(group_id="g", member_id="a", generation_id=1 if number < agreed else 4)
        log.relay(at_ms, beat, at_ms, feed="one")
        log.mark(at_ms, at_ms, since_ms=back_ms, feed="one")
    run = _engine(log, cuts=range(1, len(log.records)) if cut else ())
    expired = [(member, at_ms + T0 - back_ms) for member, at_ms in _is_confirmed(run)]
    assert expired == ([("a", 1_000 * agreed + SESSION_MS)] if agreed else [])


def test_a_held_group_waits_and_no_other_does() -> None:
    """A group that a mark holds back stands still until a later mark lets it go."""
    log = LogBuilder()
    for group in ("held", "free"):
        log.relay(T0, _beat(group, group), T0, feed="one")
    end_ms = T0 + 2 * SESSION_MS
    log.mark(end_ms, end_ms, held={"held": T0 + 100}, feed="one")
    assert _is_confirmed(_engine(log)) == [("free", SESSION_MS)]
    log.relay(end_ms, _beat("held", "held"), T0 + 3_000, feed="one")
    log.mark(end_ms, end_ms, feed="one")
    assert _is_confirmed(_engine(log)) == [("free", SESSION_MS), ("held", 3_000 + SESSION_MS)]


def test_a_group_that_moves_waits_for_both_feeds_and_not_for_one_that_is_gone() -> None:
    """Of two taps the one that is behind counts, and after a minute without its marks the other alone."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(T0, T0, feed="one")
    log.relay(T0 + 5_000, _beat(), T0 + 5_000, feed="two")
    log.mark(T0 + SILENT_AFTER_MS, T0 + 30_000, feed="two")
    assert _is_confirmed(_engine(log)) == []
    log.mark(T0 + SILENT_AFTER_MS + 1, T0 + 30_000, feed="two")
    assert _is_confirmed(_engine(log)) == [("a", 5_000 + SESSION_MS)]


def test_what_a_feed_that_was_gone_says_late_is_put_aside() -> None:
    """How far its groups went without it depends on where the job's batches ended, so they are not judged."""
    log = LogBuilder()
    for feed in FEEDS:
        log.mark(T0, T0, feed=feed)
    log.relay(T0, _beat(), T0, feed="one")
    log.relay(T0 + 5_000, _beat(), T0 + 5_000, feed="two")
    log.mark(T0 + SILENT_AFTER_MS + 1, T0 + 30_000, feed="two")
    log.relay(T0 + SILENT_AFTER_MS + 2, _beat(), T0 + 10_000, feed="one")
    log.mark(T0 + SILENT_AFTER_MS + 2, T0 + 30_000, feed="one")
    at_once, in_two = _engine(log), _engine(log, (5,))
    first = [
        min(each.row.deadline_ms for each in run.written if isinstance(each.row, ExpirationRow))
        for run in (at_once, in_two)
    ]
    assert first == [T0 + 10_000 + SESSION_MS, T0 + 5_000 + SESSION_MS]
    for run in (at_once, in_two):
        report = _audit(run)
        assert (report.faults, report.unjudged + report.unsettled > 0) == ({}, True)


@pytest.mark.parametrize("back_first", [False, True])
def test_new_coordinator_ends_the_sessions_that_it_gave(*, back_first: bool) -> None:
    """What the feed of its old broker missed meanwhile puts nothing off that the new coordinator has decided."""
    log = broker_that_comes_back(back_first=back_first)
    assert _is_confirmed_at_any_cut(log) == [("dead", LOADED_MS + SESSION_MS)]


def test_broker_that_is_gone_for_good_leaves_nobody_behind() -> None:
    """Nobody runs out between the last mark of the broker that is gone and the load; later everybody may."""
    log, loaded_ms = LogBuilder(), T0 + 9_000
    for member, at_ms in (("early", T0 - SESSION_MS), ("dead", T0), ("alive", T0)):
        log.relay(T0, _beat(member), at_ms, feed="one")
    for feed in FEEDS:
        log.mark(T0 + 100, T0 + 100, feed=feed)
    log.relay(loaded_ms, Event(group_id="g", type=EventType.LOAD), loaded_ms, feed="two")
    for at_ms in range(T0 + 10_000, T0 + SILENT_AFTER_MS + 20_000, 5_000):
        log.relay(at_ms, _beat("alive"), at_ms, feed="two")
        log.mark(at_ms, at_ms + 1, feed="two")
    assert _is_confirmed_at_any_cut(log) == [("dead", 9_000 + SESSION_MS), ("early", 0)]


@pytest.mark.parametrize("unloaded_ms", [990, 1_012])
def test_old_coordinator_may_let_go_after_the_new_one_has_loaded(unloaded_ms: int) -> None:
    """An unload that is logged a little after the load elsewhere stops no timer; one before it does, until the load."""
    log = LogBuilder()
    for member in ("dead", "alive"):
        log.relay(T0, _beat(member), T0, feed="one")
    log.mark(T0, T0, feed="two")
    log.relay(T0 + 2_000, Event(group_id="g", type=EventType.UNLOAD), T0 + unloaded_ms, feed="one")
    log.relay(T0 + 2_000, Event(group_id="g", type=EventType.LOAD), T0 + 1_000, feed="two")
    for at_ms in range(T0 + 1_500, T0 + 8_000, 1_000):
        log.relay(T0 + 8_000, _beat("alive"), at_ms, feed="two")
    for feed in FEEDS:
        log.mark(T0 + 8_000, T0 + 8_000, feed=feed)
    assert _is_confirmed_at_any_cut(log) == [("dead", 1_000 + SESSION_MS)]


def _is_put_aside(log: LogBuilder, cuts: Sequence[int]) -> None:
    """Audit what a job wrote that read all at once, and what one said instead whose batches ended elsewhere."""
    at_once, in_parts = _engine(log), _engine(log, cuts)
    assert [each.row.id for each in at_once.written] != [each.row.id for each in in_parts.written]
    for run in (at_once, in_parts):
        report = _audit(run)
        assert (report.faults, report.unjudged + report.unsettled > 0) == ({}, True)


def test_what_is_said_late_of_a_group_that_was_forgotten_is_put_aside() -> None:
    """Nobody is left in it, and its feed had told all: what it says then may be of before, or of a group begun anew."""
    log, gone_ms = LogBuilder(), T0 + 10_000 + CONFIG.empty_group_retention_ms
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(gone_ms, gone_ms, feed="one")
    log.relay(gone_ms, _beat("b"), T0 + 5_000, feed="one")
    log.mark(gone_ms + 1, gone_ms + 1, feed="one")
    _is_put_aside(log, (2,))


def test_what_is_written_of_a_group_stays_put_aside_once_nobody_is_left_in_it() -> None:
    """Rows may be read long after: that a feed spoke of the group too late is not forgotten with its last member."""
    log, end_ms = LogBuilder(), T0 + 10_000 + CONFIG.empty_group_retention_ms
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(T0, T0 + 2_000, feed="one")
    log.relay(T0, _beat("b"), T0 - 1_000, feed="one")
    log.mark(end_ms, end_ms, feed="one")
    _is_put_aside(log, (2,))


def test_what_another_feed_tells_of_a_group_before_it_was_forgotten_is_put_aside() -> None:
    """A gap of the feed that told of a group brings it up to the gap's begin, however far another feed has come."""
    log, retention_ms = LogBuilder(), CONFIG.empty_group_retention_ms
    log.relay(T0, _beat(), T0, feed="one")
    for feed in FEEDS:
        log.mark(T0 + 1_000, T0 + 1_000, feed=feed)
    end_ms = T0 + SESSION_MS + retention_ms
    log.mark(end_ms, end_ms - 5_000, feed="two")
    log.mark(end_ms, end_ms + 3_000, feed="one")
    log.mark(end_ms, end_ms + 10_000, since_ms=end_ms + 10_000, feed="one")
    log.relay(end_ms, _beat("b"), end_ms - 1_000, feed="two")
    for feed in FEEDS:
        log.mark(end_ms + 20_000, end_ms + 20_000, feed=feed)
    _is_put_aside(log, (6,))


def test_a_group_of_two_feeds_that_begins_anew_is_put_aside() -> None:
    """What was forgotten of it is that the other feed had told of it, too, and that is not waited for by a new one."""
    log = LogBuilder()
    for feed in FEEDS:
        log.mark(T0, T0, feed=feed)
    log.relay(T0, Event(type=EventType.UNLOAD, group_id="g"), T0, feed="one")
    log.relay(T0, Event(type=EventType.LOAD, group_id="g"), T0 + 1, feed="two")
    for feed in FEEDS:
        log.mark(T0, T0 + 100, feed=feed)
    log.relay(T0 + 2_000, _beat(), T0 + 2_000, feed="one")
    log.mark(T0 + 3_000, T0 + 3_000, feed="one")
    log.relay(T0 + 4_000, _beat("b"), T0 + 1_000, feed="two")
    for feed in FEEDS:
        log.mark(T0 + 30_000, T0 + 30_000, feed=feed)
    _is_put_aside(log, (6, 8))


def _rejected(log: LogBuilder, place: int, cause: str) -> Report:
    """Audit a job that has rejected one record, and has written nothing else."""
    audit = Audit(audit_config(CONFIG, feeds=FEEDS, examples_max=1_000, judge_rejects=True, tick_ms=1))
    audit.rejected(0, log.records[place].offset, cause, append_ms=log.records[place].append_ms)
    for record in log.records:
        audit.event(record.append_ms, record.partition, record.offset, record.value)
    return audit.finish()


def test_a_reject_of_a_record_that_waits_for_its_mark_is_too_early_to_judge() -> None:
    """The job may have had to refuse it as soon as it read it; whether rightly, the feed's mark is to show."""
    log = LogBuilder()
    log.mark(T0, T0, feed="one")
    log.relay(T0, _beat(), T0 + 1_000, feed="one")
    assert _rejected(log, 1, "shard_full").faults == {}
    log.mark(T0 + 2_000, T0 + 2_000, feed="one")
    assert {kind.value for kind in _rejected(log, 1, "bad_field").faults} >= {"reject_forged"}


def test_the_cause_of_a_reject_is_put_aside_where_a_feed_spoke_too_late() -> None:
    """Who was in the group by then depends on where batches ended, and so does by which cause a record is rejected."""
    log = LogBuilder()
    too_short = Event(type=EventType.JOIN, group_id="g", assigned_member_id="short", session_timeout_ms=10)
    log.relay(T0, _beat(), T0 + 1_000, feed="one")
    log.relay(T0, too_short, T0 + 1_001, feed="one")
    log.mark(T0 + 2_000, T0 + 2_000, feed="one")
    assert {kind.value for kind in _rejected(log, 1, "bad_field").faults} >= {"reject_forged"}
    late = LogBuilder()
    late.relay(T0, _beat(), T0 + 1_000, feed="one")
    late.mark(T0, T0 + 1_000, feed="one")
    late.relay(T0, _beat("b"), T0, feed="one")
    late.relay(T0, too_short, T0 + 1_001, feed="one")
    late.mark(T0 + 2_000, T0 + 2_000, feed="one")
    report = _rejected(late, 3, "bad_field")
    assert ("reject_forged" in {kind.value for kind in report.faults}, report.unsettled > 0) == (False, True)


def test_what_two_feeds_tell_of_one_millisecond_is_put_aside() -> None:
    """Also where the one is applied when the other comes: which of them is the first, nothing says."""
    log = LogBuilder()
    for feed in FEEDS:
        log.mark(T0, T0, feed=feed)
    for feed in FEEDS:
        log.relay(T0, _beat(feed), T0 + FEEDS.index(feed), feed=feed)
    for feed in FEEDS:
        log.mark(T0, T0 + 2, feed=feed)
    log.relay(T0, _beat("x"), T0 + 1_000, feed="two")
    for feed in FEEDS:
        log.mark(T0, T0 + 1_000, feed=feed)
    log.relay(T0, _beat("y"), T0 + 1_000, feed="one")
    for feed in FEEDS:
        log.mark(T0 + 30_000, T0 + 30_000, feed=feed)
    report = _audit(_engine(log))
    assert (report.faults, report.unjudged + report.unsettled > 0) == ({}, True)


def test_nobody_is_expired_who_may_have_moved_to_a_broker_whose_tap_is_behind() -> None:
    """A group of which nothing is heard any more waits for every tap; while it is heard of, for its own alone."""
    log = LogBuilder()
    for feed in FEEDS:
        log.mark(T0, T0, feed=feed)
    log.relay(T0, _beat("moves", "moving"), T0, feed="one")
    log.relay(T0, _beat("dead", "staying"), T0, feed="one")
    for second in range(30):
        log.relay(T0 + second * 1_000, _beat("alive", "staying"), T0 + second * 1_000, feed="one")
        log.mark(T0 + second * 1_000, T0 + second * 1_000 + 1, feed="one")
    assert _is_confirmed(_engine(log)) == [("dead", SESSION_MS)]
    log.relay(T0 + 31_000, _beat("moves", "moving"), T0 + 4_000, feed="two")
    log.mark(T0 + 31_000, T0 + 9_000, feed="two")
    assert _is_confirmed(_engine(log)) == [("dead", SESSION_MS)]
    log.mark(T0 + 31_000, T0 + 20_000, feed="two")
    assert _is_confirmed(_engine(log)) == [("dead", SESSION_MS), ("moves", 4_000 + SESSION_MS)]


def test_forged_marks_and_events_move_nothing() -> None:
    """A feed that is not believed, times from the far future, another partition, no marks: time stands still."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(T0, T0, feed="one")
    log.mark(T0 + 100, T0 + 1_000, feed="stranger")
    log.relay(T0 + 100, _beat(), T0 + 5_000, feed="stranger")
    for broken in ({"passed_ms": "x", "since_ms": 0}, {"passed_ms": T0 + 9_000}, {"passed_ms": -1, "since_ms": -1}):
        log.add(T0 + 200, msgspec.json.encode({"type": "mark", "feed": "one", **broken}))
    log.add(T0 + 300, msgspec.json.encode({"group_id": "g", "member_id": "a", "feed": "one"}))
    log.relay(T0 + 350, _beat(), T0 + 5_000, feed="one", partition=1)
    log.mark(T0 + 350, T0 + 9_000, feed="one", partition=1)
    run = _engine(log)
    assert not [each for each in run.written if isinstance(each.row, ExpirationRow)]
    report = _audit(run, judge_rejects=True)
    assert {kind.value: number for kind, number in report.faults.items()} == {"reject_missing": 6}
    log.mark(T0 + 400, T0 + 10**9, feed="one")
    assert _is_confirmed(_engine(log), judge_rejects=False) == [("a", SESSION_MS)]


def _expiry_of(run: Run) -> ExpirationRow:
    (row,) = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    return row


def _faults(run: Run) -> dict[str, int]:
    return {kind.value: number for kind, number in _audit(run).faults.items()}


def test_an_expiration_that_nobody_wrote_is_missed() -> None:
    """Its feed's mark says that it was due."""
    log = LogBuilder()
    log.relay(T0, _beat(), T0, feed="one")
    log.mark(T0, T0 + 3 * SESSION_MS, feed="one")
    run = _engine(log)
    row = _expiry_of(run)
    run.written = [each for each in run.written if each.row is not row]
    assert _faults(run) == {"missed": 1}


@pytest.mark.parametrize("rows_first", [True, False])
def test_an_expiration_of_a_member_that_was_heard_of_is_false(*, rows_first: bool) -> None:
    """The feed passed on a heartbeat in time, if late; before its mark nothing is said of the row."""
    silent, alive = LogBuilder(), LogBuilder()
    silent.relay(T0, _beat(), T0, feed="one")
    silent.mark(T0, T0 + SESSION_MS, feed="one")
    alive.relay(T0, _beat(), T0, feed="one")
    alive.mark(T0, T0, feed="one")
    for at_ms in range(T0 + 1_000, T0 + 40_000, 1_000):
        alive.tick(at_ms)
    run = _engine(alive)
    run.append(_expiry_of(_engine(silent)))
    run.append(next(each.row for each in _engine(silent).written if each.row not in [own.row for own in run.written]))
    assert _audit(run, rows_first=rows_first).faults == {}
    alive.relay(T0 + 40_000, _beat(), T0 + 3_000, feed="one")
    alive.mark(T0 + 40_000, T0 + SESSION_MS + 1_000, feed="one")
    faults = _audit(run, rows_first=rows_first).faults
    assert "false" in {kind.value for kind in faults}


@dataclass
class _Tap:
    """Pass on what happens at one broker, in an order and at a pace of its own."""

    name: str
    waiting: list[tuple[int, Event]]
    passed_ms: int = T0


def _event(dice: Random) -> Event:
    kind = dice.choice([EventType.HEARTBEAT] * 4 + [EventType.JOIN, EventType.SYNC, EventType.LEAVE])
    event = Event(type=kind, group_id=dice.choice("gh"), member_id=dice.choice("abc"))
    if kind in {EventType.HEARTBEAT, EventType.SYNC}:
        event = msgspec.structs.replace(event, generation_id=dice.choice([-1, -1, 0, 1, 2]))
    if kind is EventType.HEARTBEAT:
        event = msgspec.structs.replace(event, session_timeout_ms=dice.choice([1_000, 4_000]))
    if kind is EventType.JOIN:
        event = msgspec.structs.replace(
            event,
            session_timeout_ms=4_000,
            rebalance_timeout_ms=3_000,
            protocol_type="consumer",
            protocols=(Protocol("range", "x"),),
        )
    return event


def _log_of_taps(dice: Random, moves: float = 0.1) -> LogBuilder:
    """Write what two taps pass on of groups that move between their brokers; both lag, miss things and come back."""
    log, now, append_ms = LogBuilder(), T0, T0 + 5
    taps = [_Tap(name, []) for name in FEEDS]
    for tap in taps:
        log.mark(append_ms, T0, feed=tap.name)
    coordinator = {"g": 0, "h": dice.randrange(2)}
    for _ in range(dice.randint(1, 30)):
        now += dice.choice([1, 1, 100, 900, 2_000, 6_000])
        event = _event(dice)
        if dice.random() < moves:
            coordinator[event.group_id] = 1 - coordinator[event.group_id]
        if dice.random() < 0.2:
            log.add(append_ms, msgspec.structs.replace(event, group_id="own"))
        taps[coordinator[event.group_id]].waiting.append((now, event))
        append_ms = max(append_ms, now + dice.choice([0, 5, 300]))
        tap = dice.choice(taps)
        fate = dice.random()
        if fate < 0.5:
            _pass_on(log, tap, append_ms, now + 1, dice)
        elif fate < 0.6:
            tap.waiting.clear()  # it was away, and its broker's log of that time is gone
            since_ms = now + 1
            log.mark(append_ms, since_ms, since_ms=since_ms, feed=tap.name)
            tap.passed_ms = since_ms
    end_ms = now + 30_000
    for tap in taps:
        _pass_on(log, tap, max(append_ms, end_ms), end_ms, dice)
    return log


def _pass_on(log: LogBuilder, tap: _Tap, append_ms: int, passed_ms: int, dice: Random) -> None:
    dice.shuffle(tap.waiting)
    for at_ms, event in tap.waiting:
        log.relay(append_ms, event, at_ms, feed=tap.name)
    tap.waiting.clear()
    held = {"g": max(tap.passed_ms, passed_ms - 500)} if dice.random() < 0.1 and passed_ms > tap.passed_ms else {}
    log.mark(append_ms, passed_ms, since_ms=tap.passed_ms, held=held, feed=tap.name)
    tap.passed_ms = passed_ms


@pytest.mark.parametrize("moves", [0.0, 0.1])
def test_d4_any_log_of_two_taps_is_derived_alike(moves: float) -> None:
    """D4: two taps that lag and miss things, beside a group that speaks for itself, with a cut of both sides.

    Groups that move between them may be put aside; so what is written is read after what happened there.
    """
    confirmed = unsettled = 0
    for seed in range(SEEDS):
        dice = Random(seed)
        log = _log_of_taps(dice, moves)
        cuts = sorted(dice.sample(range(len(log.records) + 1), k=min(3, len(log.records))))
        run = _engine(log, cuts)
        rows_first = not moves and dice.random() < 0.5
        report = _audit(run, rows_first=rows_first, cut=dice.randrange(len(log.records)))
        assert report.faults == {}, (seed, report.findings)
        assert report.confirmed + report.unjudged + report.unsettled >= len(run.written), seed
        confirmed += report.confirmed
        unsettled += report.unsettled + report.unjudged
    assert confirmed > SEEDS
    assert unsettled * (5 if moves else 100) < confirmed
