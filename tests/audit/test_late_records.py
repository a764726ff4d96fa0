"""Late and repeated records of a worker: the same in the engine, wherever it is cut, and in the audit."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from audit.engine_runs import Run, engine_run
from audit.rich_log import CONFIG as OF_RICH_LOG
from audit.rich_log import T0
from heartwheel.proof.testing import OUTAGE_MIN_MS, RUN, LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdict_rows import ExpirationRow

CONFIG = dataclasses.replace(OF_RICH_LOG, group_max_size=2)
OLD, NEW = 1_000, 2_000
LEAVE = EventType.LEAVE


def _log(*records: dict[str, Any]) -> LogBuilder:
    log = LogBuilder()
    for record in records:
        about = {"group_id": "workers", "member_id": "w", "incarnation": OLD, **record}
        log.add(T0 + about.pop("at"), Event(**about))
    return log


def _beats(
    from_ms: int, to_ms: int, incarnation: int | None = OLD, member: str = "w", **fields: int | str
) -> list[dict[str, Any]]:
    return [
        {"at": at, "incarnation": incarnation, "member_id": member, "session_timeout_ms": 6_000, **fields}
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
    "late beat, short session": [
        *_beats(0, 3_000, NEW), *_beats(2_100, 3_000, session_timeout_ms=1_000, client_id="old", client_host="/old"),
    ],
    "late beat, long session": [*_beats(0, 3_000, NEW), *_beats(2_100, 3_000, session_timeout_ms=60_000)],
    "late beats, short session": [
        *_beats(0, 1_000, NEW), *_beats(100, 6_000, session_timeout_ms=1_500),
        {"at": 6_000, "type": LEAVE, "failure": "x"},
    ],
    "clock set back, long session": [
        *_beats(0, 1_000, NEW), *_beats(100, 6_200, session_timeout_ms=60_000),
        {"at": 6_300, "type": LEAVE, "failure": "x"},
    ],
    "late failure of another instance": [
        *_beats(0, 3_000, NEW), {"at": 2_900, "type": LEAVE, "failure": "x", "group_instance_id": "i"},
    ],
    "late failure of somebody's instance": [
        *_beats(0, 3_000, NEW), *_beats(0, 3_000, None, "other", group_instance_id="i"),
        {"at": 2_900, "type": LEAVE, "group_instance_id": "i"}, *_beats(2_950, 3_000, session_timeout_ms=1_000),
        {"at": 3_000, "type": LEAVE, "incarnation": NEW}, *_beats(3_050, 4_000),
    ],
    "leave twice by its instance": [
        *_beats(0, 1_000, NEW, group_instance_id="i"), *_beats(1_000, 2_000, group_instance_id="i"),
        *({"at": at, "type": LEAVE, "incarnation": NEW, "member_id": "", "group_instance_id": "i"}
          for at in (900, 1_100)),
    ],
    "late beat of an instance": [
        *_beats(0, 1_000, group_instance_id="i"), *_beats(500, 3_000, NEW, "w-1", group_instance_id="i"),
        *_beats(2_600, 3_000, group_instance_id="i"),
        {"at": 3_000, "type": LEAVE, "incarnation": NEW, "member_id": "w-1", "group_instance_id": "i"},
    ],
    "late beat makes static": [*_beats(0, 3_000, NEW), *_beats(2_100, 3_000, group_instance_id="i")],
    "behind a load": [
        *_beats(0, 1_000, NEW), *_beats(100, 200), {"at": 300, "type": EventType.UNLOAD},
        {"at": 20_000, "type": EventType.LOAD}, *_beats(20_100, 21_000), {"at": 21_000, "type": LEAVE, "failure": "x"},
    ],
    "failure in a full group": [
        *_beats(0, 1_000, NEW, "other"), *_beats(0, 1_000, NEW, "third"),
        {"at": 100, "type": LEAVE, "failure": "x"},
        {"at": 200, "type": LEAVE, "incarnation": NEW, "member_id": "other"}, *_beats(300, 1_000),
        {"at": 400, "type": LEAVE, "failure": "x"},
        {"at": 500, "type": LEAVE, "incarnation": NEW, "member_id": "third"},
    ],
    "failure with a session that is not allowed": [
        *_beats(0, 1_000, NEW, "other"), {"at": 100, "type": LEAVE, "failure": "x", "session_timeout_ms": 1},
        *_beats(200, 1_000), {"at": 300, "type": LEAVE, "incarnation": NEW, "member_id": "other"},
    ],
    "end of a replaced instance": [
        *_beats(0, 1_000, group_instance_id="i"), *_beats(100, 1_000, NEW, "w-1", group_instance_id="i"),
        {"at": 200, "type": LEAVE, "group_instance_id": "i"},
        {"at": 300, "type": LEAVE, "incarnation": NEW, "member_id": "w-1"}, *_beats(400, 1_000, group_instance_id="i"),
    ],
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
    "late beat, short session": [("session_timeout", 8_100)],
    "late beat, long session": [("session_timeout", 8_100)],
    "late beats, short session": [("session_timeout", 11_100)],
    "clock set back, long session": [("worker_failed", 6_300)],
    "late failure of another instance": [("session_timeout", 8_000)],
    "late failure of somebody's instance": [("session_timeout", 8_000)],
    "leave twice by its instance": [("session_timeout", 7_000)],
    "late beat of an instance": [],
    "late beat makes static": [("session_timeout", 8_100)],
    "behind a load": [("session_timeout", 26_100)],
    "failure in a full group": [],
    "failure with a session that is not allowed": [],
    "end of a replaced instance": [],
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


def test_p1_engine_and_audit_agree_on_a_late_heartbeat_behind_an_outage() -> None:
    """P1: the later start could not beat, so its member is not taken, and a late failure removes nobody."""
    records = [*_beats(0, 2_000, NEW), *_beats(2_100, 3_000), *_beats(20_100, 21_000)]
    log = _log(*records, {"at": 21_050, "type": LEAVE, "failure": "x"})
    for at in (*range(0, 3_001, 200), *range(20_000, 40_001, 200)):
        log.tick(T0 + at)
    in_time, log = sorted(log.records, key=lambda record: record.append_ms), LogBuilder()
    for record in in_time:
        log.add(record.append_ms, record.value)
    for cut in range(len(in_time)):
        run = engine_run(log, clock_ms=T0 + 50_000, config=CONFIG, cuts=[cut])
        assert _ends(run) == [("session_timeout", 26_100)], cut
    assert run.audit(runs=(RUN,), outage_min_ms=OUTAGE_MIN_MS, tick_ms=1).ok


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
