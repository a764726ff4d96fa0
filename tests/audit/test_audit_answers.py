"""Groups of which a source knows the coordinator's answers: the audit derives the very rows that the engine writes."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from audit.engine_runs import engine_run
from heartwheel.proof.testing import LogBuilder
from heartwheel.wire.events import ACCEPTED, Event, EventType, Protocol
from heartwheel.wire.verdict_rows import TriggerRow
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


@st.composite
def _steady_answered_logs(draw: st.DrawFn) -> LogBuilder:
    """Draw a log of a group whose members beat steadily and are accepted, and seem to leave or expire now and then."""
    log, now_ms = LogBuilder(), T0
    beats = [
        Event(group_id="g", member_id=name, group_instance_id=draw(st.sampled_from([None, f"i-{name}"])),
              generation_id=5, error_code=ACCEPTED)
        for name in ("a", "b", "c")
    ]  # fmt: skip
    joins = [_join_of(beat, draw(st.sampled_from([1_000, 1_500, 4_000]))) for beat in beats]
    syncs = [replace(beat, type=EventType.SYNC) for beat in beats]
    for event in (replace(beats[0], generation_id=4), *joins, *(syncs if draw(st.booleans()) else ())):
        log.add(now_ms, event)
    for _ in range(draw(st.integers(5, 40))):
        now_ms += draw(st.sampled_from([10, 300, 300, 700, 999, 1_000, 1_001]))
        who = draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
        name, beat = beats[who].member_id, beats[who]
        others = (
            replace(beat, error_code=27),
            replace(beat, type=EventType.COMMIT),
            replace(joins[who], generation_id=6),
            Event(group_id="g", type=EventType.LEAVE, member_id=name),
            Event(group_id="g", type=EventType.EXPIRED, member_id=name),
        )
        log.add(now_ms, draw(st.sampled_from((beat,) * 12 + others)))
    return log


def _join_of(beat: Event, session_ms: int) -> Event:
    return replace(beat, type=EventType.JOIN, session_timeout_ms=session_ms, rebalance_timeout_ms=9_000,
                   protocol_type="consumer", protocols=(Protocol("range"),), leader="a")  # fmt: skip


@given(_steady_answered_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_d4_steady_answered_heartbeats_are_derived_alike(log: LogBuilder, data: st.DataObject) -> None:
    """D4: the same accepted heartbeat shows more the later it comes, and the batches it comes in change nothing."""
    cuts = data.draw(st.one_of(cuts_of(log), st.just(list(range(len(log.records))))))
    run = engine_run(log, clock_ms=log.records[-1].append_ms + LATER, config=CONFIG, cuts=cuts)
    report = run.audit(cut=data.draw(st.integers(0, len(log.records))))
    assert report.faults == {}, report.findings
    assert report.confirmed == len({each.row.id for each in run.written})


@pytest.mark.parametrize("instance", [None, "i"])
def test_p3_repeated_heartbeats_end_a_join_phase_that_is_none(instance: str | None) -> None:
    """Member b expires here, but not at the coordinator, which keeps accepting the heartbeats of a.

    The first of them that comes more than a second after the expiry is the proof, also in a batch of its own.
    """
    log = LogBuilder()
    beat = Event(group_id="g", member_id="a", group_instance_id=instance, generation_id=5, error_code=ACCEPTED)
    join = _join_of(beat, session_ms=1_500)
    for event in (replace(beat, generation_id=4), join, replace(join, member_id="b", group_instance_id=None)):
        log.add(T0, event)
    log.add(T0, replace(beat, type=EventType.SYNC))
    for step in range(1, 21):
        log.add(T0 + 300 * step - 50, beat)
        log.beat(T0 + 300 * step + 50, "other", "c")  # b expires in a batch that has nothing of its group
    run = engine_run(log, clock_ms=T0 + 6_100, config=CONFIG, cuts=range(len(log.records)))
    shown = [each.row for each in run.written if isinstance(each.row, TriggerRow)][-1]
    assert (shown.cause, shown.time_ms) == ("generation_advanced", T0 + 2_650)
    assert run.audit().faults == {}
