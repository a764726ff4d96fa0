"""The very milliseconds of time from the log: ties between partitions, gaps at their bound, timers among heartbeats."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, ProducedRecord, by_group, read_records, run_rules
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.verdicts import ExpiryReason, Verdict
from support.heartbeat_logs import CONFIG, T0
from support.shard_runs import group_in, shard_runs


def _apply(*batches: Sequence[ProducedRecord], config: CoordinatorConfig = CONFIG) -> list[Verdict]:
    """Apply batches to a shard, which is written down and read between them."""
    reads = (read_records(sorted(batch, key=lambda each: (each.partition, each.offset))) for batch in batches)
    return [verdict for _, result in shard_runs(reads, config) for verdict in result.verdicts]


@pytest.mark.parametrize(
    "seen_in",
    [(0,), (0, 2), (2,), (2, 0), (1, 0, 2)],
    ids=["first", "first of two", "home", "other", "one of two others"],
)
def test_p3_a_record_waits_for_what_a_lower_partition_may_still_hold_at_its_time(seen_in: tuple[int, ...]) -> None:
    """P3: equal times go by partition: one that was read up to a time, and not beyond it, may hold an earlier record.

    The lower partition is the one that the group was first seen in, that its id says, or another that it was seen in.
    """
    group = group_in(home=0 if seen_in == (2,) else 2, partitions=3)
    log = LogBuilder()
    for partition in range(3):
        log.tick(T0, partition=partition, run="of another job")
    for number, partition in enumerate(seen_in):
        log.beat(T0 + number, group, "m", session_timeout_ms=60_000, partition=partition)
    for partition in range(3):
        log.tick(T0 + 100, partition=partition, run="of another job")
    known = len(log.records)
    for partition in range(2):
        log.tick(T0 + 1_000, partition=partition, run="of another job")
    log.beat(T0 + 1_000, group, "m", session_timeout_ms=2_000, partition=2)
    read = len(log.records)
    log.beat(T0 + 1_000, group, "m", session_timeout_ms=9_000, partition=0)
    for partition in range(3):
        log.tick(T0 + 20_000, partition=partition, run="of another job")
    # Batch by batch, so that the partitions are seen in the order of the case.
    first = [log.records[:3], *([record] for record in log.records[3 : 3 + len(seen_in)])]
    verdicts = _apply(*first, log.records[3 + len(seen_in) : known], log.records[known:read], log.records[read:])
    assert [(each.member_id, each.time_ms - T0) for each in verdicts if each.expiry_reason] == [("m", 3_000)]


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize(("gap_ms", "expired_ms"), [(OUTAGE_MIN_MS, 3_002), (OUTAGE_MIN_MS + 1, 6_003)])
def test_a_gap_as_long_as_the_least_outage_is_none(gap_ms: int, expired_ms: int, batches: int) -> None:
    """P2: `engine.outage_min` itself is silence, within a batch and between two; a millisecond more is an outage."""
    log = LogBuilder()
    log.beat(T0, "g", "m", session_timeout_ms=3_002)
    for t in (0, gap_ms, gap_ms + 200, 6_100):
        log.tick(T0 + t)
    cut = 2 * (batches - 1)
    verdicts = _apply(log.records[:cut], log.records[cut:])
    assert [each.time_ms - T0 for each in verdicts if each.expiry_reason] == [expired_ms]


@pytest.mark.parametrize("cut", range(4))
def test_p4_sessions_that_end_together_end_alike_in_a_group_that_was_of_another_kind_for_a_moment(cut: int) -> None:
    """P4: a join made a loaded group a classic one, and a heartbeat of a later generation a loaded one again."""
    log = LogBuilder()
    log.beat(T0, "g", "a", generation_id=1, session_timeout_ms=1_000)
    join = Event(
        type=EventType.JOIN,
        group_id="g",
        member_id="c",
        session_timeout_ms=4_000,
        rebalance_timeout_ms=1_000,
        protocol_type="consumer",
        protocols=(Protocol("range"),),
    )
    log.add(T0 + 500, join)
    log.beat(T0 + 500, "g", "b", generation_id=2, session_timeout_ms=4_000)
    log.tick(T0 + 9_000)
    verdicts = _apply(log.records[:cut], log.records[cut:])
    assert [each.member_id for each in verdicts if each.expiry_reason] == ["a", "c", "b"]


def _joined(log: LogBuilder) -> None:
    """Write how A and B join one generation, and how A, the leader, syncs, and B does not."""
    for member in "AB":
        log.add(
            T0,
            Event(
                type=EventType.JOIN,
                group_id="g",
                assigned_member_id=member,
                api_version=3,
                session_timeout_ms=3_000,
                rebalance_timeout_ms=6_000,
                protocol_type="consumer",
                protocols=(Protocol("range"),),
            ),
        )
    log.add(T0 + 2_000, Event(type=EventType.SYNC, group_id="g", member_id="A", generation_id=1))


def test_p3_no_heartbeat_overtakes_a_timer_of_its_group() -> None:
    """P3: among heartbeats that could be handled at once, the timer of those who owe a sync ends at its own time."""
    config = CoordinatorConfig(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=1_000)
    log = LogBuilder()
    _joined(log)
    for t in range(2_500, 12_000, 500):
        for member in "AB":
            log.beat(T0 + t + 100, "g", member, generation_id=1)
    log.tick(T0 + 12_000)
    half = len(log.records) // 3
    verdicts = _apply(log.records[:half], log.records[half:], config=config)
    ended = [each.time_ms - T0 for each in verdicts if each.expiry_reason is ExpiryReason.SYNC_TIMEOUT]
    assert ended == [8_000]
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=T0 + 12_000, config=config))
