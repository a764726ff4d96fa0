"""The audit and the engine, which share no code, agree on every row of any log: the engine is right or both are wrong.

HEARTWHEEL_EXAMPLES=5000 tries more logs.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.engine_runs import Run, audit_config, engine_run
from coordinator.group_logs import CONFIG as GROUP_CONFIG
from coordinator.group_logs import logs as group_logs
from heartwheel.engine.replay.meta import read_meta
from heartwheel.engine.rules.config import KAFKA_VERSIONS, coordinator_config
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.proof.audit import Report
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event
from support.epoch_beats import EPOCHS_CONFIG, epoch_logs, mid_life_logs, migrating_logs, steady_epoch_logs
from support.heartbeat_logs import CONFIG, EXAMPLES, T0, beating_logs, cuts_of, heartbeat_logs

LATER = 30_000
RECORDINGS = sorted(path.parent for path in (Path(__file__).parents[1] / "recordings").glob("*/meta.json"))
A_THIRD = max(1, EXAMPLES // 3)


def _end(log: LogBuilder) -> int:
    return max([T0, *(record.append_ms for record in log.records)]) + LATER


def _is_clean(report: Report, run: Run) -> None:
    assert report.faults == {}, report.findings
    assert (report.confirmed, report.pending) == (len({each.row.id for each in run.written}), 0)


@given(st.one_of(heartbeat_logs(), beating_logs()), st.data())
@settings(max_examples=A_THIRD)
def test_d4_any_log_any_cut_is_clean(log: LogBuilder, data: st.DataObject) -> None:
    """D4: whatever the log, however it was cut, the audit derives the very rows and rejects that the shard wrote."""
    run = engine_run(log, clock_ms=_end(log), config=CONFIG, cuts=data.draw(cuts_of(log)))
    report = run.audit(
        rows_first=data.draw(st.booleans()),
        cut=data.draw(st.integers(0, len(log.records))),
    )
    _is_clean(report, run)


@given(st.one_of(epoch_logs(), steady_epoch_logs(), migrating_logs(), mid_life_logs()), st.data())
@settings(max_examples=A_THIRD)
def test_d4_groups_that_go_by_member_epochs_are_derived_alike(log: LogBuilder, data: st.DataObject) -> None:
    """D4: consumer, share and streams groups, classic members in them and conversions, with a cut of both sides."""
    config = replace(EPOCHS_CONFIG, kafka_version=data.draw(st.sampled_from(KAFKA_VERSIONS)))
    run = engine_run(log, clock_ms=_end(log), config=config, cuts=data.draw(cuts_of(log)))
    report = run.audit(rows_first=data.draw(st.booleans()), cut=data.draw(st.integers(0, len(log.records))))
    _is_clean(report, run)


@pytest.mark.parametrize("shown", [102, 103, 2**31 - 1])
def test_p6_epochs_that_an_answer_shows_are_derived_alike(shown: int) -> None:
    """P6: however far an answer moves the epoch, the audit derives the very rows, and they are few."""
    log = LogBuilder()
    log.group_beat(T0, "g", "a", 0, answer=2)
    log.group_beat(T0 + 100, "g", "a", 2, answer=shown)
    run = engine_run(log, clock_ms=_end(log), config=EPOCHS_CONFIG)
    assert len(run.written) < 110
    _is_clean(run.audit(), run)


@given(group_logs())
@settings(max_examples=A_THIRD)
def test_d4_well_informed_members_are_derived_alike(events: list[tuple[int, Event]]) -> None:
    """D4: logs in which members name the right generation reach every state, and the audit follows through all."""
    log, now = LogBuilder(), T0
    for wait_ms, event in events:
        now += wait_ms
        log.add(now, event)
    run = engine_run(log, clock_ms=_end(log), config=GROUP_CONFIG)
    _is_clean(run.audit(), run)


@given(heartbeat_logs(), st.data(), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=A_THIRD // 2)
def test_p6_records_beyond_the_limits_are_left_out(
    log: LogBuilder, data: st.DataObject, most: int, of_all: int
) -> None:
    """P6: what the engine refused at its own limits, and said so, the audit leaves out; nothing else may be missing."""
    limits = ShardLimits(members_per_group_max=most, members_max=of_all)
    run = engine_run(log, clock_ms=_end(log), config=CONFIG, cuts=data.draw(cuts_of(log)), limits=limits)
    _is_clean(run.audit(members_per_group_max=most), run)


def test_p6_who_has_expired_is_refused_by_a_full_shard() -> None:
    """P6: a member whose time was over is a newcomer again, and may be refused; the audit looks at the time first."""
    log = LogBuilder()
    for t_ms, group_id in ((0, "g"), (990, "h"), (1_300, "g")):
        log.add(T0 + t_ms, Event(group_id=group_id, member_id="a", generation_id=0))
    log.add(T0 + 2_300, Event(group_id="h", member_id="a"))
    log.add(T0 + 2_300, Event(group_id="g", member_id="a"))
    run = engine_run(log, clock_ms=_end(log), config=CONFIG, cuts=[3], limits=ShardLimits(members_max=1))
    assert [(reject.offset, reject.cause) for reject in run.rejected] == [(4, "shard_full")]
    _is_clean(run.audit(), run)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_recorded_requests_are_derived_alike(folder: Path) -> None:
    """Requests that real clients sent to a real broker lead both to the same rows."""
    meta = read_meta(folder / "meta.json")
    assert meta.end_ms is not None
    config = coordinator_config(meta.settings)
    log = LogBuilder()
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        value = json.loads(line)
        log.add(value["t_ms"], decode_event(line))
    run = engine_run(log, clock_ms=meta.end_ms, config=config)
    assert run.written
    assert audit_config(config).group_max_size == config.group_max_size
    _is_clean(run.audit(tick_ms=1), run)
