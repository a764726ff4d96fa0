"""Groups of which a source knows the coordinator's answers: the audit derives the very rows that the engine writes."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.engine_runs import engine_run
from heartwheel.proof.testing import LogBuilder
from support.answered_world import T0, lived_world
from support.epoch_beats import EPOCHS_CONFIG, mid_life_logs, migrating_logs
from support.heartbeat_logs import CONFIG, EXAMPLES, cuts_of, heartbeat_logs

LATER = 30_000


@pytest.mark.parametrize("seed", range(12))
def test_d4_rest_of_a_log_is_derived_alike(seed: int) -> None:
    """D4: wherever a tap begins, and however its log is cut into batches, no row is wrong, missed or too many."""
    world, cuts = lived_world(seed), random.Random(seed)
    for broker_log in (False, True):
        log = LogBuilder()
        for at_ms, event in world.since(cuts.randrange(T0, world.now_ms - 26_000), broker_log=broker_log):
            log.add(at_ms, event)
        ends = [cuts.randrange(len(log.records) + 1) for _ in range(3)]
        run = engine_run(log, clock_ms=world.now_ms, config=world.config, cuts=ends)
        report = run.audit(cut=cuts.randrange(len(log.records)))
        assert report.faults == {}, (seed, broker_log, report.findings)
        assert report.confirmed == len({each.row.id for each in run.written})


def _answered(log: LogBuilder, chance: random.Random) -> LogBuilder:
    """Return a log of which most requests have an answer, which need not make sense."""
    found = LogBuilder()
    for record in log.records:
        value = record.value
        if value is not None and value.startswith(b"{") and b"heartbeat" not in value:
            fields = msgspec.json.decode(value)
            if isinstance(fields, dict) and "failure" not in fields and chance.random() < 0.8:
                fields["error_code"] = chance.choice((0, 0, 0, 27, 79))
                if fields.get("type") == "join" and chance.random() < 0.8:
                    fields |= {"generation_id": chance.randrange(0, 5), "leader": fields.get("member_id") or None}
                elif fields.get("member_id") and chance.random() < 0.05:
                    fields = {"type": "expired", "group_id": fields["group_id"], "member_id": fields["member_id"]}
                value = msgspec.json.encode(fields)
        found.add(record.append_ms, value, partition=record.partition)
    return found


@given(st.one_of(heartbeat_logs(), mid_life_logs(), migrating_logs()), st.randoms(use_true_random=False), st.data())
@settings(max_examples=EXAMPLES)
def test_d4_answers_that_make_no_sense_are_derived_alike(
    log: LogBuilder, chance: random.Random, data: st.DataObject
) -> None:
    """D4: whatever answers a log claims, both sides follow them to the same rows and rejects."""
    config = EPOCHS_CONFIG if b"consumer_heartbeat" in b"".join(r.value or b"" for r in log.records) else CONFIG
    log = _answered(log, chance)
    end_ms = max([T0, *(record.append_ms for record in log.records)]) + LATER
    run = engine_run(log, clock_ms=end_ms, config=config, cuts=data.draw(cuts_of(log)))
    report = run.audit(cut=data.draw(st.integers(0, len(log.records))))
    assert report.faults == {}, report.findings
    assert report.confirmed == len({each.row.id for each in run.written})
