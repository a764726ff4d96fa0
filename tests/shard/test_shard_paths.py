"""Both paths of a shard, and the rules alone, reach the same verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.shard import Shard
from heartwheel.proof.testing import LogBuilder, by_group, read_records, run_rules, run_shard
from support.heartbeat_logs import CONFIG, EXAMPLES, T0, beating_logs, cuts_of, heartbeat_logs

LATER = 30_000


def _end(log: LogBuilder) -> int:
    return max([T0, *(record.append_ms for record in log.records)]) + LATER


@given(heartbeat_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_any_log_any_cut_gives_the_verdicts_of_the_rules(log: LogBuilder, data: st.DataObject) -> None:
    """P3: events of all types, cut anywhere, with a restart at each cut: per group the very list of the rules alone."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=data.draw(cuts_of(log)), config=CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=CONFIG))


@given(beating_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_steady_heartbeats_give_the_verdicts_of_the_rules(log: LogBuilder, data: st.DataObject) -> None:
    """P3 on the fast path: members that beat, fall silent and come back, within a batch and across batches."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=data.draw(cuts_of(log)), config=CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=CONFIG))


def _steady(members: int, beats: int) -> LogBuilder:
    log = LogBuilder()
    for beat in range(beats):
        for member in range(members):
            log.beat(T0 + 300 * beat, f"g{member % 3}", f"m{member}", session_timeout_ms=1_000)
    return log


def test_known_heartbeats_take_the_fast_path() -> None:
    """Neither a member's plain first heartbeat nor its repetitions cost a rule, also over many session timeouts."""
    log = _steady(members=9, beats=50)
    shard = Shard(coordinator=CONFIG, limits=ShardLimits())
    first = shard.apply(*read_records(log.records[:9]))
    rest = shard.apply(*read_records(log.records[9:]))
    assert (first.counts["records_rules"], first.counts["records_fast"]) == (0, 9)
    assert (rest.counts["records_rules"], rest.counts["records_fast"]) == (0, 9 * 49)
    assert not [verdict for verdict in rest.verdicts if verdict.expiry_reason]


@pytest.mark.parametrize(("gap_ms", "expired"), [(999, 0), (1_000, 1), (1_001, 1)])
@pytest.mark.parametrize("cut", [True, False])
def test_i6_a_heartbeat_at_its_deadline_is_late(*, gap_ms: int, expired: int, cut: bool) -> None:
    """I6: a member is alive while now < deadline: a silence of T - 1 keeps it, of T and T + 1 expires it."""
    log = LogBuilder()
    for t in (0, 0, gap_ms, gap_ms + 10):
        log.beat(T0 + t, "g", "a", session_timeout_ms=1_000)
        log.beat(T0 + t, "g", "b", session_timeout_ms=4_000)
    verdicts = run_shard(log, clock_ms=T0 + gap_ms + 20, cuts=[2, 4] if cut else [2], config=CONFIG)
    assert [v.member_id for v in verdicts if v.expiry_reason] == ["a"] * expired


def test_p4_a_groups_expiry_comes_before_its_rebalance() -> None:
    """P4: the expiration is written before the trigger it causes, and generations only go up."""
    log = _steady(members=3, beats=2)
    verdicts = by_group(run_shard(log, clock_ms=T0 + LATER, config=CONFIG))
    for of_group in verdicts.values():
        kinds = [v.kind.value for v in of_group]
        assert kinds.index("member_expired") < len(kinds) - 1
        generations = [v.generation_id for v in of_group]
        assert generations == sorted(generations)


@given(heartbeat_logs())
@settings(max_examples=EXAMPLES)
def test_durations_and_times_are_those_of_the_log(log: LogBuilder) -> None:
    """No verdict lasts longer than its log, or was true before it began or after it ended."""
    for verdict in run_rules(log, clock_ms=_end(log), config=CONFIG):
        assert T0 - LATER <= verdict.time_ms <= _end(log)
        assert 0 <= (verdict.duration_ms or 0) <= _end(log) - T0 + LATER
