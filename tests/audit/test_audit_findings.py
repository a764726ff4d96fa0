"""D4, the audit of the audit: topics with one fault are found to have just that one, whichever row it is in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from audit.engine_runs import Rejected, WrittenRow, engine_run
from audit.rich_log import CONFIG, T0, rich_log
from heartwheel.proof.audit import FindingKind, Report
from heartwheel.proof.audit.derived import Row, id_of
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

CLOCK_MS = T0 + 32_000
CLEAN = engine_run(rich_log(), clock_ms=CLOCK_MS, config=CONFIG, cuts=[40, 80, 120])
ROWS = range(len(CLEAN.written))


def _sorts() -> list[int]:
    """Pick one row of each sort: by its reason, type, cause and group."""
    sorts: dict[tuple[str | None, ...], int] = {}
    for number, written in enumerate(CLEAN.written):
        row = written.row
        sort = (row.reason,) if isinstance(row, ExpirationRow) else (row.type, row.cause)
        sorts.setdefault((row.group_id if row.group_id == "met" else None, *sort), number)
    return sorted(sorts.values())


every_row = pytest.mark.parametrize("number", _sorts())
both_ways = pytest.mark.parametrize("rows_first", [True, False])


def _faults(report: Report) -> dict[str, int]:
    return {kind.value: count for kind, count in report.faults.items()}


def _with(row: Row, **fields: object) -> Row:
    """Change fields of a row, and give it the id that it must have then."""
    changed = msgspec.structs.replace(row, **fields)
    return msgspec.structs.replace(changed, id=id_of(changed))


def _moved(row: Row, by_ms: int) -> Row:
    if isinstance(row, ExpirationRow):
        return _with(row, deadline_ms=row.deadline_ms + by_ms, lateness_ms=row.lateness_ms - by_ms)
    return _with(row, time_ms=row.time_ms + by_ms)


def _place(written: WrittenRow) -> tuple[str, int, int]:
    return ("expirations" if isinstance(written.row, ExpirationRow) else "triggers", written.partition, written.offset)


def test_the_log_has_every_kind_of_row() -> None:
    """What is falsified below is every reason of expiry, every type of trigger, and a reject of each side."""
    expired = {each.row.reason for each in CLEAN.written if isinstance(each.row, ExpirationRow)}
    triggers = {each.row.type for each in CLEAN.written if isinstance(each.row, TriggerRow)}
    assert expired == {
        "session_timeout",
        "rebalance_timeout",
        "sync_timeout",
        "pending_timeout",
        "new_member_timeout",
    }
    assert triggers == {"rebalance_triggered", "rebalance_completed", "group_empty"}
    assert {reject.cause for reject in CLEAN.rejected} == {"not_json", "tombstone", "invalid_session_timeout"}


@both_ways
def test_what_the_engine_told_is_clean(*, rows_first: bool) -> None:
    """Nothing is found where nothing is wrong, and every row is confirmed."""
    report = CLEAN.copy().audit(rows_first=rows_first)
    assert (report.ok, report.faults, report.confirmed, report.derived) == (True, {}, len(ROWS), len(ROWS))


@every_row
def test_a_missed_verdict_is_found(number: int) -> None:
    """Of whatever row is not there, just that verdict is missed."""
    run = CLEAN.copy()
    gone = run.written.pop(number).row
    report = run.audit()
    assert _faults(report) == {"missed": 1}
    assert report.findings[0].group_id == gone.group_id
    assert gone.id in report.findings[0].detail


@every_row
@both_ways
def test_a_row_written_again_is_no_fault(number: int, *, rows_first: bool) -> None:
    """At least once is what is promised: the same row again is counted, and is no fault."""
    run = CLEAN.copy()
    run.append(run.written[number].row)
    report = run.audit(rows_first=rows_first)
    assert (report.faults, report.repeated) == ({}, 1)


@every_row
@both_ways
def test_a_second_row_with_the_same_id_is_found(number: int, *, rows_first: bool) -> None:
    """Another row with a known id, which says something else, is a duplicate."""
    run = CLEAN.copy()
    row = run.written[number].row
    other = {"client_id": "x"} if isinstance(row, ExpirationRow) else {"member_count": row.member_count + 1}
    added = run.append(msgspec.structs.replace(row, **other))
    report = run.audit(rows_first=rows_first)
    assert _faults(report) == {"duplicate": 1}
    assert (report.findings[0].topic, report.findings[0].partition, report.findings[0].offset) == _place(added)


@every_row
@both_ways
def test_a_second_row_with_another_id_is_found(number: int, *, rows_first: bool) -> None:
    """A second row about the same silence, or the same generation, is a duplicate although its id is a new one."""
    run = CLEAN.copy()
    run.append(_moved(run.written[number].row, 1))
    assert _faults(run.audit(rows_first=rows_first)) == {"duplicate": 1}


@every_row
@both_ways
def test_a_row_with_a_wrong_time_is_found(number: int, *, rows_first: bool) -> None:
    """A row that tells another time than the log is wrong, once: neither false nor missed on top."""
    run = CLEAN.copy()
    run.written[number].row = _moved(run.written[number].row, -1)
    report = run.audit(rows_first=rows_first)
    assert _faults(report) == {"wrong": 1}
    assert "time is" in report.findings[0].detail


_FIELDS: dict[type, tuple[str, ...]] = {
    ExpirationRow: (
        "group_instance_id",
        "client_host",
        "last_seen_ms",
        "session_timeout_ms",
        "group_state",
        "lateness_ms",
    ),
    TriggerRow: ("reason", "deadline_ms", "leader", "member_count", "awaiting_count", "removed", "joined"),
}


def _other(was: Any, *, is_number: bool) -> object:
    if isinstance(was, tuple):
        return (*was, "nobody")
    return (was or 0) + 1 if is_number else f"{was}?"


@every_row
def test_a_row_with_a_wrong_fact_is_found(number: int) -> None:
    """Whichever fact of a row is not what the log says is found and named."""
    for field in _FIELDS[type(CLEAN.written[number].row)]:
        run = CLEAN.copy()
        changed = _other(getattr(run.written[number].row, field), is_number=field.endswith(("_ms", "_count")))
        run.written[number].row = msgspec.structs.replace(run.written[number].row, **{field: changed})
        report = run.audit()
        assert _faults(report) == {"wrong": 1}
        assert field.removesuffix("_count") in report.findings[0].detail


@every_row
@both_ways
def test_a_row_with_a_forged_id_is_found(number: int, *, rows_first: bool) -> None:
    """An id that is not that of the content is a forgery, and the verdict does not count as missed as well."""
    run = CLEAN.copy()
    run.written[number].row = msgspec.structs.replace(run.written[number].row, id="0" * 32)
    assert _faults(run.audit(rows_first=rows_first)) == {"forged": 1}


@every_row
def test_content_under_anothers_id_is_found(number: int) -> None:
    """Content that was changed under the true id is a forgery, too: the id tells."""
    run = CLEAN.copy()
    row = run.written[number].row
    changes: list[dict[str, object]] = [{"generation_id": row.generation_id + 1}]
    if isinstance(row, TriggerRow):
        changes.append({"cause": "generation_advanced" if row.cause != "generation_advanced" else "no_members"})
    for change in changes:
        run.written[number].row = msgspec.structs.replace(row, **change)
        assert _faults(run.audit()) == {"forged": 1}


def _false_expiry(row: Row) -> Row:
    assert isinstance(row, ExpirationRow)
    return _with(
        row, member_id="w0", deadline_ms=T0 + 4_000, last_seen_ms=T0 + 2_500, lateness_ms=row.detected_ms - T0 - 4_000
    )


def _false_trigger(row: Row) -> Row:
    return _with(row, generation_id=99, type="rebalance_triggered")


FORGERIES: dict[str, tuple[Callable[[Row], bool], Callable[[Row], Row], FindingKind]] = {
    "a living member expired": (lambda row: isinstance(row, ExpirationRow), _false_expiry, FindingKind.FALSE),
    "a rebalance that never was": (lambda row: isinstance(row, TriggerRow), _false_trigger, FindingKind.FALSE),
    "a group nobody knows": (lambda _: True, lambda row: _with(row, group_id="?"), FindingKind.FORGED),
    "a member nobody knows": (
        lambda row: isinstance(row, ExpirationRow),
        lambda row: _with(row, member_id="?"),
        FindingKind.FORGED,
    ),
    "a reason nobody gives": (
        lambda row: isinstance(row, ExpirationRow),
        lambda row: msgspec.structs.replace(row, reason="boredom"),
        FindingKind.FORGED,
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
@both_ways
def test_a_row_too_many_is_found(name: str, *, rows_first: bool) -> None:
    """What the log does not give is false, and forged if it is about somebody who is not in the log at all."""
    wanted, change, kind = FORGERIES[name]
    run = CLEAN.copy()
    added = run.append(change(run.find(lambda row: wanted(row) and row.group_id == "workers").row))
    report = run.audit(rows_first=rows_first)
    assert report.faults == {kind: 1}
    assert (report.findings[0].topic, report.findings[0].partition, report.findings[0].offset) == _place(added)


def _neighbours() -> list[tuple[int, int]]:
    """List the pairs of rows that follow each other in one topic and group."""
    last: dict[tuple[str, type], list[int]] = {}
    for number, written in enumerate(CLEAN.written):
        last.setdefault((written.row.group_id, type(written.row)), []).append(number)
    return [pair for numbers in last.values() for pair in pairwise(numbers)]


@pytest.mark.parametrize("pair", _neighbours())
@both_ways
def test_p4_rows_that_changed_places_are_found(pair: tuple[int, int], *, rows_first: bool) -> None:
    """P4: two rows of a group that stand in the wrong order are one fault."""
    run = CLEAN.copy()
    one, other = (run.written[number] for number in pair)
    one.row, other.row = other.row, one.row
    assert _faults(run.audit(rows_first=rows_first)) == {"out_of_order": 1}


def test_p4_an_expiry_that_was_noticed_after_its_rebalance_is_found() -> None:
    """P4 holds between the two topics, too: an expiry is noticed no later than the rebalance that it triggers."""
    run = CLEAN.copy()
    expired = run.find(lambda row: isinstance(row, ExpirationRow) and row.group_id == "met")
    assert isinstance(expired.row, ExpirationRow)
    late = expired.row.detected_ms + 500
    expired.row = msgspec.structs.replace(expired.row, detected_ms=late, lateness_ms=late - expired.row.deadline_ms)
    assert _faults(run.audit()) == {"out_of_order": 1}


@pytest.mark.parametrize("number", range(len(CLEAN.rejected)))
def test_p6_a_missing_reject_is_found(number: int) -> None:
    """P6: a record that cannot be used and is not on the rejects topic was dropped in silence."""
    run = CLEAN.copy()
    gone = run.rejected.pop(number)
    report = run.audit()
    assert _faults(report) == {"reject_missing": 1}
    assert (report.findings[0].partition, report.findings[0].offset) == (gone.partition, gone.offset)


@pytest.mark.parametrize(("number", "cause"), [(0, "tombstone"), (1, "shard_full"), (2, "not_json")])
def test_a_reject_of_another_cause_is_found(number: int, cause: str) -> None:
    """A reject says why, and the audit knows why."""
    run = CLEAN.copy()
    run.rejected[number] = Rejected(run.rejected[number].partition, run.rejected[number].offset, cause)
    assert _faults(run.audit()) == {"reject_forged": 1}


@pytest.mark.parametrize(
    ("offset", "cause"), [(3, "not_json"), (1_000, "not_json"), (60, "shard_full"), (60, "group_full")]
)
def test_a_reject_of_a_good_record_is_found(offset: int, cause: str) -> None:
    """A reject of a record that was used, or is not there, is forged; a known member meets no limit."""
    run = CLEAN.copy()
    run.rejected.append(Rejected(0, offset, cause))
    assert _faults(run.audit()) == {"reject_forged": 1}


def test_what_is_after_the_clock_is_too_early_to_say() -> None:
    """Neither a verdict that is not due by the clock is missed, nor a row after it false."""
    run = CLEAN.copy()
    last_ms = max(each.row.detected_ms for each in run.written)
    after = [each for each in run.written if each.row.detected_ms == last_ms]
    run.written = [each for each in run.written if each not in after]
    run.clock_ms = (
        min(each.row.deadline_ms if isinstance(each.row, ExpirationRow) else each.row.time_ms for each in after) - 1
    )
    report = run.audit()
    assert (report.faults, report.derived > report.confirmed, report.pending > 0) == ({}, True, True)


def test_a_verdict_in_the_tick_of_the_clock_is_too_early_to_say() -> None:
    """The wheel rounds deadlines up to its tick, so the clock must have passed the end of it."""
    run = CLEAN.copy()
    last = max(run.written, key=lambda each: each.row.deadline_ms if isinstance(each.row, ExpirationRow) else 0)
    assert isinstance(last.row, ExpirationRow)
    run.written = [each for each in run.written if each is not last]
    run.clock_ms = last.row.deadline_ms + 1
    assert last.row.id not in " ".join(f.detail for f in run.audit(tick_ms=1_000, examples_max=99).findings)
    assert last.row.id in " ".join(f.detail for f in run.audit(tick_ms=1, examples_max=99).findings)


def test_findings_are_all_counted_and_the_first_are_kept() -> None:
    """A topic that is all wrong makes a short report with the true numbers."""
    run = CLEAN.copy()
    run.written.clear()
    report = run.audit(examples_max=3)
    assert (report.faults, len(report.findings)) == ({FindingKind.MISSED: len(ROWS)}, 3)
