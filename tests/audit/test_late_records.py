"""Late and repeated records of a worker: the same in the engine, wherever it is cut, and in the audit."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from audit.engine_runs import Run, engine_run
from audit.rich_log import CONFIG, T0
from heartwheel.testing import LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import ExpirationRow

OLD, NEW = 1_000, 2_000
LEAVE = EventType.LEAVE


def _log(*records: dict[str, Any]) -> LogBuilder:
    log = LogBuilder()
    for record in records:
        about = {"group_id": "workers", "member_id": "w", "incarnation": OLD, **record}
        log.add(T0 + about.pop("at"), Event(**about))
    return log


def _beats(from_ms: int, to_ms: int, incarnation: int | None = OLD, member: str = "w") -> list[dict[str, Any]]:
    return [
        {"at": at, "incarnation": incarnation, "member_id": member, "session_timeout_ms": 6_000}
        for at in range(from_ms, to_ms, 1_000)
    ]


LOGS = {
    "late leave": [*_beats(0, 3_000), *_beats(3_100, 9_000, NEW), {"at": 9_000, "type": LEAVE}],
    "late failure": [*_beats(0, 3_000), *_beats(3_100, 9_000, NEW), {"at": 9_000, "type": LEAVE, "failure": "x"}],
    "failure twice": [*_beats(0, 3_000), *({"at": at, "type": LEAVE, "failure": "x"} for at in (3_000, 3_500))],
    "failure twice, unheard": [{"at": at, "type": LEAVE, "failure": "x"} for at in (3_000, 3_500)],
    "beat behind its leave": [
        *_beats(0, 9_000, None, "other"), *_beats(10, 8_000), {"at": 8_100, "type": LEAVE}, *_beats(8_200, 8_300),
        {"at": 8_900, "type": LEAVE, "member_id": "other", "incarnation": None},
    ],
    "late failure twice": [
        *_beats(0, 3_000), *_beats(3_100, 6_000, NEW), {"at": 6_000, "type": LEAVE, "failure": "x"},
        {"at": 6_500, "type": LEAVE, "failure": "y", "incarnation": NEW}, {"at": 7_000, "type": LEAVE, "failure": "x"},
    ],
    "clock set back": [*_beats(0, 3_000, NEW), *_beats(3_100, 11_000), {"at": 11_000, "type": LEAVE, "failure": "x"}],
    "an end long ago": [{"at": 0, "type": LEAVE, "failure": "x"}, {"at": 120_000, "type": LEAVE, "failure": "x"}],
}  # fmt: skip

ENDS = {
    "late leave": [("session_timeout", 14_100)],
    "late failure": [("session_timeout", 14_100)],
    "failure twice": [("worker_failed", 3_000)],
    "failure twice, unheard": [("worker_failed", 3_000)],
    "beat behind its leave": [],
    "late failure twice": [("worker_failed", 6_500)],
    "clock set back": [("worker_failed", 11_000)],
    "an end long ago": [("worker_failed", 0), ("worker_failed", 120_000)],
}


def _ends(run: Run) -> list[tuple[str, int]]:
    rows = [each.row for each in run.written if isinstance(each.row, ExpirationRow)]
    return [(str(row.reason), row.deadline_ms - T0) for row in rows]


@pytest.mark.parametrize("name", LOGS)
def test_engine_and_audit_agree_at_any_cut(name: str) -> None:
    """Who ends, how and when: no start before the present one does anything."""
    log = _log(*sorted(LOGS[name], key=lambda record: record["at"]))
    for cuts in [(), *itertools.combinations(range(len(log.records)), 2)]:
        run = engine_run(log, clock_ms=T0 + 150_000, config=CONFIG, cuts=cuts)
        assert _ends(run) == ENDS[name], cuts
    report = run.audit()
    assert report.ok, report
    assert report.confirmed == len(run.written)
    assert all(run.audit(cut=cut).ok for cut in range(len(log.records)))


@pytest.mark.parametrize("name", ["late failure", "failure twice", "beat behind its leave"])
def test_the_audit_finds_an_engine_that_does_not_know_incarnations(name: str) -> None:
    """Rows as they are without the field are false, of the same log with it."""
    log = _log(*sorted(LOGS[name], key=lambda record: record["at"]))
    plain = _log(*({**record, "incarnation": None} for record in sorted(LOGS[name], key=lambda record: record["at"])))
    run = engine_run(plain, clock_ms=T0 + 150_000, config=CONFIG)
    run.log = log
    assert not run.audit().ok


def test_an_end_of_many_is_forgotten_by_both() -> None:
    """The last thousand ends of a group are remembered, and no other."""
    ends = [{"at": at, "type": LEAVE, "member_id": f"w{at}", "failure": ""} for at in range(1_001)]
    log = _log(*ends, *({**end, "at": 2_000} for end in reversed(ends[:3])))
    run = engine_run(log, clock_ms=T0 + 9_000, config=CONFIG)
    assert len(_ends(run)) == 1_002
    assert run.audit().ok
