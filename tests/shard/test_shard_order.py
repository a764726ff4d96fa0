"""The order of a group's records: by offset in its partition, by append time where it is in several."""

from __future__ import annotations

from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.proof.testing import LogBuilder, by_group, read_records, run_rules, run_shard
from support.heartbeat_logs import CONFIG, T0


def test_c5_append_time_that_steps_back_is_clamped_and_counted() -> None:
    """C5: at a leader change append time goes back a little: offsets decide the order, and nobody's time goes back."""
    log = LogBuilder()
    for t in (0, 300, 600, 580, 590, 900, 1_200):
        log.beat(T0 + t, "g", "a", session_timeout_ms=1_000)
        log.beat(T0 + t, "g", "b", session_timeout_ms=4_000)
    expected = by_group(run_rules(log, clock_ms=T0 + 2_300, config=CONFIG))
    assert by_group(run_shard(log, clock_ms=T0 + 2_300, config=CONFIG)) == expected
    assert by_group(run_shard(log, clock_ms=T0 + 2_300, cuts=[2, 6], config=CONFIG)) == expected
    shard = Shard(coordinator=CONFIG, limits=ShardLimits())
    read = read_records(log.records)
    assert read.readings[0].regressed == 4
    shard.apply(*read)
    assert shard.figures.at_risk(1)[0].deadline_ms == T0 + 2_200


def test_a_group_in_two_partitions_is_ordered_by_append_time_and_named() -> None:
    """A group that breaks the contract "one group, one partition" is still handled, by time, and counted by name."""
    log = LogBuilder()
    log.beat(T0, "g", "a", session_timeout_ms=1_000, partition=1)
    log.beat(T0 + 1_500, "g", "a", session_timeout_ms=1_000, partition=1)
    # Read after the two above by partition, appended between them.
    log.beat(T0 + 800, "g", "a", session_timeout_ms=1_000, partition=2)
    for partition in range(3):
        log.tick(T0 + 1_600, partition=partition)
    shard = Shard(coordinator=CONFIG, limits=ShardLimits())
    outcome = shard.apply(*read_records(log.records))
    assert not [verdict for verdict in outcome.verdicts if verdict.expiry_reason]
    assert shard.figures.strays(10) == {"g": 1}
    assert outcome.counts["records_astray"] == 1


def test_equal_times_in_two_partitions_go_by_partition() -> None:
    """Between partitions equal append times are ordered by partition, so that every replay sees one order."""
    log = LogBuilder()
    log.beat(T0, "g", "late", session_timeout_ms=1_000, partition=3)
    log.beat(T0, "g", "early", session_timeout_ms=1_000, partition=0)
    for partition in range(4):
        log.tick(T0 + 1, partition=partition)
    shard = Shard(coordinator=CONFIG, limits=ShardLimits())
    shard.apply(*read_records(log.records))
    ((group, _),) = shard.dump()
    assert list(group.members) == ["early", "late"]
