"""A worker that failed, as whoever watches it says: a row of its own, in the engine and in the audit."""

from __future__ import annotations

import pytest

from audit.engine_runs import Run, engine_run
from audit.rich_log import CONFIG, T0
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

END_MS = T0 + 9_000


def _leave(group: str = "workers", member: str = "w", **fields: object) -> tuple[int, Event]:
    return 5_500, Event(type=EventType.LEAVE, group_id=group, member_id=member, **fields)  # type: ignore[arg-type]


def _log(*leaves: tuple[int, Event]) -> LogBuilder:
    """Two plain workers, one static worker, and two members of a group that was met in mid-life."""
    events = list(leaves)
    for at in range(0, 9_000, 1_000):
        if at < 5_500:
            about = {"client_id": "c", "client_host": "/10.0.0.1", "session_timeout_ms": 6_000}
            events.append((at + 6, Event(group_id="workers", member_id="w", **about)))  # type: ignore[arg-type]
            events.append((at + 6, Event(group_id="workers", member_id="s", group_instance_id="i")))
        events.append((at + 6, Event(group_id="workers", member_id="v")))
        events += [(at + 5, Event(group_id="met", member_id=m, generation_id=7)) for m in ("x", "y")]
    log = LogBuilder()
    for at, event in sorted(events, key=lambda each: each[0]):
        log.add(T0 + at, event)
    return log


def _run(*leaves: tuple[int, Event], cuts: tuple[int, ...] = ()) -> Run:
    return engine_run(_log(*leaves), clock_ms=END_MS, config=CONFIG, cuts=cuts)


def _failed(run: Run) -> list[ExpirationRow]:
    return [each.row for each in run.written if isinstance(each.row, ExpirationRow) and each.row.failure is not None]


def _causes(run: Run, group: str) -> list[str | None]:
    rows = [each.row for each in run.written if isinstance(each.row, TriggerRow) and each.row.group_id == group]
    return [row.cause for row in rows if row.time_ms >= T0 + 5_500]


@pytest.mark.parametrize("cuts", [(), (5,), (20, 30), (40,)])
def test_a_failure_is_an_expiration(cuts: tuple[int, ...]) -> None:
    """Who failed, how, when that was said, and when it was last heard of; the group goes on without it."""
    run = _run(_leave(reason="done", failure="exit code 3"), cuts=cuts)
    (row,) = _failed(run)
    assert (row.group_id, row.member_id, row.client_host, row.generation_id) == ("workers", "w", "/10.0.0.1", 3)
    assert (row.reason, row.failure, row.group_kind) == ("worker_failed", "exit code 3", "presence")
    assert (row.deadline_ms, row.last_seen_ms, row.session_timeout_ms) == (T0 + 5_500, T0 + 5_006, 6_000)
    assert _causes(run, "workers") == ["member_expired", "member_expired"]
    report = run.audit()
    assert report.ok
    assert report.confirmed == len(run.written)


def test_a_worker_that_failed_before_its_first_beat() -> None:
    """It arrives and is gone, in a group that is known and in one that nobody knows; the session is what it names."""
    run = _run(
        _leave(member="new", failure="tcp 8080: Connection refused", session_timeout_ms=7_000),
        _leave(group="unheard", member="only", failure=""),
    )
    rows = {row.group_id: row for row in _failed(run)}
    known, unheard = rows["workers"], rows["unheard"]
    assert (known.member_id, known.last_seen_ms, known.session_timeout_ms) == ("new", T0 + 5_500, 7_000)
    assert (unheard.member_id, unheard.failure, unheard.generation_id) == ("only", "", 1)
    assert _causes(run, "unheard") == ["member_joined", "member_joined", "no_members"]
    assert unheard.group_kind == "presence"
    assert run.audit().ok


def test_an_empty_group_is_remembered_from_its_last_failure_on() -> None:
    """P4: a worker that fails at once was there, so generations go on for a whole retention after that."""
    retention_ms = CONFIG.empty_group_retention_ms
    log = LogBuilder()
    for at in (0, retention_ms - 1, 2 * retention_ms - 2):
        log.add(T0 + at, Event(type=EventType.LEAVE, group_id="g", member_id="a", failure=""))
    run = engine_run(log, clock_ms=T0 + 2 * retention_ms, config=CONFIG)
    assert [row.generation_id for row in _failed(run)] == [1, 3, 5]
    assert run.audit().ok


def test_a_static_worker_may_be_named_by_its_instance() -> None:
    """It is found by its instance id alone, as a leave finds it."""
    run = _run(_leave(member="", group_instance_id="i", failure="ended by SIGKILL"))
    assert [(row.member_id, row.group_instance_id) for row in _failed(run)] == [("s", "i")]
    assert run.audit().ok


@pytest.mark.parametrize(
    "leave",
    [
        _leave(reason="exit code 3"),
        _leave(group="met", member="x", failure="exit code 3"),
        _leave(member="", group_instance_id="nobody", failure="exit code 3"),
        _leave(member="stranger", group_instance_id="i", failure="exit code 3"),
        _leave(member="new", failure="exit code 3", session_timeout_ms=1),
    ],
)
def test_other_leaves_are_none(leave: tuple[int, Event]) -> None:
    """Not one that names no failure, of a group with generations, of nobody, or with a session out of bounds."""
    run = _run(leave)
    assert _failed(run) == []
    assert run.audit().ok


@pytest.mark.parametrize(("ahead_ms", "gone"), [(-1, False), (0, True)])
def test_a_job_is_expired_when_its_next_success_is_late(ahead_ms: int, gone: bool) -> None:  # noqa: FBT001 - a parameter
    """Its session is its period and its grace, of days if need be: longer than any consumer's may be."""
    session_ms = CONFIG.presence_max_session_timeout_ms
    log = LogBuilder()
    log.add(T0, Event(group_id="backup", member_id="job", session_timeout_ms=30_000, client_id="job-run"))
    log.add(T0 + 9_000, Event(group_id="backup", member_id="job", session_timeout_ms=session_ms, client_id="job"))
    log.add(T0 + 9_000, Event(group_id="other", member_id="x", session_timeout_ms=session_ms + 1))
    run = engine_run(log, clock_ms=T0 + 9_000 + session_ms + ahead_ms, config=CONFIG)
    expired = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    assert [(row.client_id, row.last_seen_ms, row.deadline_ms) for row in expired] == (
        [("job", T0 + 9_000, T0 + 9_000 + session_ms)] if gone else []
    )
    assert run.audit().ok


def test_the_audit_compares_how_it_failed() -> None:
    """An engine that says another failure than the log, or none, is found out."""
    run = _run(_leave(failure="exit code 3"))
    (row,) = _failed(run)
    row.failure = "exit code 4"
    assert not run.audit().ok
    run.written = [each for each in run.written if each.row is not row]
    assert {kind.value: number for kind, number in run.audit().faults.items()} == {"missed": 1}
