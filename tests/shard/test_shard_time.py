"""Time from the log: the verdicts of a shard depend on the log alone, however far each partition is read in a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from random import Random

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.time import LogTime
from heartwheel.engine.time.log_time import MOVED_MS_MAX
from heartwheel.engine.time.outage import RESUME_MAX_MS
from heartwheel.proof.testing import (
    OUTAGE_MIN_MS,
    RUN,
    LogBuilder,
    ProducedRecord,
    Read,
    by_group,
    read_records,
    run_shard,
    until,
)
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.partitioner import murmur2, partition_of
from heartwheel.wire.tick import read_tick
from heartwheel.wire.verdicts import Cause, Verdict
from support.heartbeat_logs import CONFIG, EXAMPLES, T0
from support.log_time_reference import outages_of, run_reference
from support.shard_runs import group_in, shard_runs

PARTITIONS = 3
GROUPS = ["g", "h"]


def _end(log: LogBuilder) -> int:
    return max([T0, *(record.append_ms for record in log.records)]) + 60_000


def _batches(dice: Random, log: LogBuilder, *, known: int = 0) -> list[list[ProducedRecord]]:
    """Read any number of records of each partition in a batch, in the order of each; `known` of each in the first."""
    rest = [[record for record in log.records if record.partition == p] for p in range(PARTITIONS)]
    batches = [[record for mine in rest for record in mine[:known]]]
    rest = [mine[known:] for mine in rest]
    while any(rest):
        batch = []
        for mine in rest:
            most = dice.choice([0, 1, 2, 5, 50])
            batch += mine[:most]
            del mine[:most]
        batches.append(batch)
    return batches


def _event(dice: Random, *kinds: EventType) -> Event:
    kind = dice.choice(kinds)
    fields: dict[str, object] = {"type": kind, "group_id": dice.choice(GROUPS), "member_id": dice.choice("abc")}
    if kind in {EventType.HEARTBEAT, EventType.SYNC}:
        fields["generation_id"] = dice.choice([-1, -1, 0, 1, 1, 2])
    if kind is EventType.HEARTBEAT and dice.random() < 0.5:
        fields["session_timeout_ms"] = dice.choice([1_000, 1_500, 4_000])
    if kind is EventType.JOIN:
        fields |= {
            "session_timeout_ms": dice.choice([1_000, 4_000]),
            "rebalance_timeout_ms": dice.choice([1_000, 3_000]),
            "protocol_type": "consumer",
            "protocols": (Protocol("range", dice.choice("xy")),),
        }
    return Event(**fields)  # type: ignore[arg-type]  # fields by name, checked by the decoder of every batch


def _run(
    log: LogBuilder,
    batches: list[list[ProducedRecord]],
    config: CoordinatorConfig,
    runs: tuple[str, ...] = (RUN,),
    *,
    former: tuple[int, ...] = (),
) -> list[Verdict]:
    reads = [read_records(batch, runs=runs) for batch in batches]
    ends_ms = (_end(log) - RESUME_MAX_MS - 1, _end(log))  # whatever gap there is at the end is decided
    reads += [Read([], until(end_ms, *range(PARTITIONS))) for end_ms in ends_ms]
    played = list(shard_runs(reads, config, counts=(*former, PARTITIONS) if former else ()))
    assert played[-1][0].waiting_count == 0
    return [verdict for _, result in played for verdict in result.verdicts]


SLOW = CoordinatorConfig(
    group_min_session_timeout_ms=200,
    group_initial_rebalance_delay_ms=700,
    new_member_join_timeout_ms=8_000,
    default_session_timeout_ms=5_000,
    default_rebalance_timeout_ms=6_000,
    empty_group_retention_ms=20_000,
)
"""Sessions that outlast an outage's beginning, so that there is something to renew."""


def _expired(batches: Iterable[Sequence[ProducedRecord]]) -> list[tuple[str | None, int]]:
    """Return who is expired, and when, ms after `T0`."""
    reads = (read_records(sorted(batch, key=lambda each: (each.partition, each.offset))) for batch in batches)
    verdicts = [verdict for _, result in shard_runs(reads, SLOW) for verdict in result.verdicts]
    return [(each.member_id, each.time_ms - T0) for each in verdicts if each.expiry_reason]


def _strayed_log(dice: Random) -> LogBuilder:
    """Write a log of groups that are in all partitions; append times may step back, and there is no tick."""
    log, now = LogBuilder(), T0
    for partition in range(PARTITIONS):
        for group in GROUPS:
            log.beat(T0, group, "z", session_timeout_ms=600_000, partition=partition)
    for _ in range(dice.randint(1, 30)):
        now += dice.choice([0, 0, 1, 200, 299, 999, 1_000, 1_001, 6_000])
        event = _event(dice, EventType.HEARTBEAT, EventType.HEARTBEAT, EventType.JOIN, EventType.LEAVE, EventType.SYNC)
        log.add(now - dice.choice([0, 0, 0, 7]), event, partition=dice.randrange(PARTITIONS))
    return log


def test_p3_groups_in_several_partitions_are_merged_however_they_are_read() -> None:
    """P3: a group's records are merged by time, partition and offset, whatever part of each partition a batch reads."""
    for seed in range(EXAMPLES // 3):
        dice = Random(seed)
        log = _strayed_log(dice)
        verdicts = _run(log, _batches(dice, log, known=len(GROUPS)), SLOW)
        assert by_group(verdicts) == by_group(run_reference(log, clock_ms=_end(log), config=SLOW)), seed


def _log_with_outages(dice: Random, *former: int) -> LogBuilder:
    """Write a log of groups that keep to the partition that is theirs, with ticks of runs that stop and go.

    Args:
        dice: where all of it comes from.
        former: how many partitions there were before, by which producers still go, too.
    """
    log, now = LogBuilder(), T0
    hashes = {group: murmur2(group.encode()) & 0x7FFFFFFF for group in GROUPS}
    for _ in range(dice.randint(1, 50)):
        now += dice.choice([0, 1, 100, 200, 400, 401, 1_000, 3_000, 3_001, 3_500, 9_000, 13_100])
        for _ in range(dice.randint(1, 3)):
            if dice.random() < 0.5:
                run = dice.choice([RUN, RUN, RUN, RUN, "another", "forged"])
                log.tick(now, partition=dice.randrange(PARTITIONS), run=run, partitions=PARTITIONS)
            else:
                event = _event(dice, EventType.HEARTBEAT, EventType.HEARTBEAT, EventType.JOIN, EventType.SYNC)
                home = hashes[event.group_id] % dice.choice([PARTITIONS, *former])
                log.add(now - dice.choice([0, 0, 0, 7, 3_400]), event, partition=home)
    return log


def test_p3_outages_renew_the_same_sessions_however_they_are_read() -> None:
    """P3: which gaps are outages, and what they renew, is a function of the log, wherever its batches are cut."""
    outages, runs = 0, (RUN, "another")
    for seed in range(EXAMPLES // 3):
        dice = Random(seed)
        log = _log_with_outages(dice)
        expected = run_reference(log, clock_ms=_end(log), config=SLOW, runs=runs)
        assert by_group(_run(log, _batches(dice, log), SLOW, runs)) == by_group(expected), seed
        outages += sum(
            len(outages_of([record for record in log.records if record.partition == p], runs))
            for p in range(PARTITIONS)
        )
    assert outages > EXAMPLES // 10


def test_p3_outages_renew_the_same_sessions_of_groups_in_two_partitions_however_they_are_read() -> None:
    """P3: a group is renewed if a record from there was applied before, since it began, wherever a batch ends."""
    config = dataclasses.replace(SLOW, empty_group_retention_ms=2_000)
    # In the first one a group with a pending renewal is forgotten while its records wait for that renewal.
    for seed in (42, *range(EXAMPLES // 3)):
        dice = Random(seed)
        log = _log_with_outages(dice, 1)
        expected = run_reference(log, clock_ms=_end(log), config=config)
        assert by_group(_run(log, _batches(dice, log), config, former=(1,))) == by_group(expected), seed


def _living(*, until_ms: int, pause: tuple[int, int]) -> LogBuilder:
    """Write a log of members that beat every second, and of ticks, nothing of which is written during a pause."""
    log = LogBuilder()
    for t in range(0, until_ms, 100):
        if pause[0] <= t < pause[1]:
            continue
        if t % 200 == 0:
            log.tick(T0 + t)
        if t % 1_000 == 500 and t < until_ms:
            log.beat(T0 + t, "orders", "alive", session_timeout_ms=8_000)
            if t < pause[0]:
                log.beat(T0 + t, "orders", "dead", session_timeout_ms=8_000)
    return log


def test_an_expiry_says_that_an_outage_put_it_off() -> None:
    """Who died in an outage was renewed at its end, whenever that is read; who beat after it was not.

    A state that was encoded between knows it, too.
    """
    log = _living(until_ms=80_000, pause=(20_000, 40_000))
    quiet = [record for record in log.records if read_tick(record.value) is not None]
    end = next(i for i, record in enumerate(log.records) if record.append_ms >= T0 + 42_000)
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    verdicts = list(shard.apply(*read_records(log.records[:end])).verdicts)
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, blob=shard.encode())
    rest = [record for record in quiet if record.append_ms >= T0 + 42_000]
    verdicts += shard.apply(*read_records(rest)).verdicts
    expired = [each for each in verdicts if each.expiry_reason]
    assert [(each.member_id, each.time_ms - T0) for each in expired] == [("dead", 48_000), ("alive", 49_500)]
    assert [each.renewed_ms for each in expired] == [T0 + 40_000, None]


@pytest.mark.parametrize(("behind_ms", "expired"), [(1_000, []), (10_000, [("alive", 27_980)])])
def test_limit_a_slow_leader_between_two_ticks_hides_an_outage(behind_ms: int, expired: list[tuple[str, int]]) -> None:
    """docs/guarantees.md, what is assumed: a leader whose clock is behind wrote the last tick, and another one a beat.

    By its own append time that tick is old then. By effective time a ticker that died under the slow leader would
    count as alive, which `test_audit_outages.py::test_the_tick_before_is_timed_by_its_own_append_time` rules out.
    """
    log, living = LogBuilder(), _living(until_ms=60_000, pause=(20_000, 40_000)).records
    before = [record for record in living if record.append_ms < T0 + 20_000]
    for record in before:
        log.add(record.append_ms, record.value)
    log.tick(T0 + 19_950 - behind_ms)
    log.beat(T0 + 19_980, "orders", "alive", session_timeout_ms=8_000)
    for record in living[len(before) :]:
        log.add(record.append_ms, record.value)
    verdicts = run_shard(log, clock_ms=T0 + 60_000, config=SLOW)
    found = [(each.member_id, each.time_ms - T0) for each in verdicts if each.expiry_reason]
    assert [each for each in found if each[0] == "alive"] == expired


def test_nothing_in_a_gap_is_decided_before_its_tick_is_read() -> None:
    """A heartbeat after the gap proves that time has passed, but not why: it waits for the tick that tells."""
    log = _living(until_ms=60_000, pause=(20_000, 40_000))
    cut = next(i for i, record in enumerate(log.records) if record.append_ms >= T0 + 40_000)
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    shard.apply(*read_records(log.records[:cut]))
    late = LogBuilder()
    late.beat(T0 + 40_050, "orders", "alive", session_timeout_ms=8_000)
    assert not shard.apply(*read_records(late.records)).verdicts
    assert (shard.waiting_count, bool(shard.time.partitions[0].gaps)) == (1, True)
    assert shard.clock_ms == log.records[cut - 1].append_ms
    outcome = shard.apply([], read_records(_tick_at(40_200).records).readings)
    assert [outage.after_ms - T0 for outage in outcome.outages] == [40_050]
    assert (shard.waiting_count, bool(shard.time.partitions[0].gaps)) == (0, False)
    assert not [verdict for verdict in outcome.verdicts if verdict.expiry_reason]


def _tick_at(t_ms: int) -> LogBuilder:
    log = LogBuilder()
    log.tick(T0 + t_ms)
    return log


def test_a_partition_without_time_holds_its_own_groups_only() -> None:
    """Nothing comes from one partition, not even a tick: its groups wait, and all others go on."""
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    homes = {group: partition_of(group.encode(), 2) for group in map(str, range(20))}
    log = LogBuilder()
    for group, partition in homes.items():
        log.beat(T0, group, "m", session_timeout_ms=1_000, partition=partition)
    shard.apply(*read_records(log.records))
    expired = [v.group_id for v in shard.apply([], until(T0 + 60_000, 0)).verdicts if v.expiry_reason]
    assert sorted(expired) == sorted(group for group, partition in homes.items() if partition == 0)
    assert 0 < len(expired) < len(homes)
    rest = [v.group_id for v in shard.apply([], until(T0 + 60_000, 1)).verdicts if v.expiry_reason]
    assert sorted(expired + rest) == sorted(homes)


def test_busy_partitions_go_on_without_ticks_and_quiet_ones_stand_still() -> None:
    """Ticks and heartbeats prove time alike: with a dead ticker verdicts come as far as other members' records go."""
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    log = LogBuilder()
    for partition, group in enumerate(("idle", "quiet")):
        log.beat(T0, group, "dead", session_timeout_ms=1_000, partition=partition)
    for t in range(100, 5_000, 100):
        log.beat(T0 + t, "idle", "alive", session_timeout_ms=1_000, partition=0)
    homes = [partition_of(group.encode(), 2) for group in ("idle", "quiet")]
    assert homes == [0, 1], "the groups' ids choose these partitions"
    outcome = shard.apply(*read_records(log.records))
    assert [(v.group_id, v.member_id) for v in outcome.verdicts if v.expiry_reason] == [("idle", "dead")]


def test_a_group_that_moved_waits_for_the_partition_it_came_from() -> None:
    """The topic grew under a backlog: newer records in the new partition are read before older ones in the old."""
    group = group_in(2, 3)
    log = LogBuilder()
    for t in range(0, 20_000, 1_000):
        log.beat(T0 + t, group, "m", session_timeout_ms=3_000, partition=0)
    for t in range(20_000, 40_000, 1_000):
        log.beat(T0 + t, group, "m", session_timeout_ms=3_000, partition=2)
    for t in range(0, 40_000, 200):
        log.tick(T0 + t, partition=0)
        log.tick(T0 + t, partition=1)
        if t >= 20_000:
            log.tick(T0 + t, partition=2, partitions=3)
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS)
    parts = [[record for record in log.records if record.partition == p] for p in range(3)]
    waited = 0
    for turn in range(10):
        batch = [record for mine in parts for record in mine[turn * len(mine) // 10 : (turn + 1) * len(mine) // 10]]
        outcome = shard.apply(*read_records(sorted(batch, key=lambda record: (record.partition, record.offset))))
        assert not [verdict for verdict in outcome.verdicts if verdict.expiry_reason]
        waited = max(waited, shard.waiting_count)
    assert waited > 0
    assert shard.waiting_count <= 1


def _moved() -> tuple[list[list[ProducedRecord]], str]:
    """Write a log, by partition, of a group that the growth from one partition to three takes to the last of them."""
    group = group_in(2, 3)
    log = LogBuilder()
    for t in range(0, 8_000, 1_000):
        log.beat(T0 + t, group, "old", session_timeout_ms=3_000, partition=0)
    for t in range(8_000, 20_000, 1_000):
        log.beat(T0 + t, group, "new", session_timeout_ms=3_000, partition=2)
    for t in range(0, 20_000, 200):
        log.tick(T0 + t, partition=0, partitions=1 if t < 8_000 else 3)
    for t in range(8_000, 20_000, 200):
        log.tick(T0 + t, partition=1, partitions=3)
        log.tick(T0 + t, partition=2, partitions=3)
    return [[record for record in log.records if record.partition == p] for p in range(3)], group


@pytest.mark.parametrize("counts", [(1, 3), (1,)])
def test_a_growth_in_the_first_batch_is_known_by_the_starts_before(counts: tuple[int, ...]) -> None:
    """P3: the first batch may be done again, or be planned, after a growth; older records may come in a later batch."""
    (old, *new), _ = _moved()
    shard = Shard(coordinator=SLOW, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, counts=counts)
    first = shard.apply(*read_records([*new[0], *new[1]]))
    assert first.verdicts == []
    assert shard.waiting_count > 0
    second = shard.apply(*read_records(old))
    assert [v.member_id for v in second.verdicts if v.expiry_reason] == ["old"]
    joined = [v.time_ms - T0 for v in second.verdicts if v.cause == Cause.MEMBER_JOINED]
    assert joined == [0, 0, 8_000, 8_000]


def test_former_partitions_are_waited_for_until_the_last_partition_is_read_beyond_the_growth() -> None:
    """P3: of a backlog one partition may be read for hours beyond a growth before another is read up to it."""
    time, beyond_ms = LogTime(), T0 + 20_000 + MOVED_MS_MAX
    for partition in (0, 1):
        time.read(until(T0, partition), outage_min_ms=OUTAGE_MIN_MS, counts=(2,))
    time.read(until(T0 + 20_000, 2), outage_min_ms=OUTAGE_MIN_MS, counts=(2, 3))
    for partition, end_ms in (
        (2, beyond_ms + 1),
        (2, beyond_ms + 2),
        (0, beyond_ms + 1),
        (1, beyond_ms),
        (1, beyond_ms + 1),
    ):
        time.read(until(end_ms, partition), outage_min_ms=OUTAGE_MIN_MS)
        assert time.former == [2], partition
    time.read(until(beyond_ms + 2, 0), outage_min_ms=OUTAGE_MIN_MS)
    assert time.former == []


def test_p3_a_group_that_is_forgotten_and_begins_again_is_renewed_however_it_is_read() -> None:
    """P3: one partition was read beyond an outage before the group, by the other one, is forgotten and begins again."""
    group = group_in(0, 2)
    log = LogBuilder()
    for partition in (0, 1):
        log.beat(T0, group, "old", session_timeout_ms=1_000, partition=partition)
    for t in (*range(0, 30_000, 200), *range(40_000, 60_001, 200)):
        if t == 29_800:
            log.beat(T0 + t, group, "new", session_timeout_ms=8_000)
        log.tick(T0 + t, partitions=2)
    for t in range(0, 60_001, 200):
        log.tick(T0 + t, partition=1, partitions=2)
    here, there = ([record for record in log.records if record.partition == number] for number in (0, 1))
    forgotten = next(at for at, record in enumerate(there) if record.append_ms > T0 + 1_000 + 20_000)
    batches = ([here[0], there[0]], here[1:], there[1:forgotten], there[forgotten:])
    assert _expired(batches) == [("old", 1_000), ("new", 48_000)]


@pytest.mark.parametrize("cut", [False, True])
def test_p3_a_group_that_begins_anew_in_one_batch_was_seen_nowhere_before(*, cut: bool) -> None:
    """P3: an outage of a partition that a group was in before it was forgotten renews nothing, however it is read."""
    group = group_in(1, 2)
    log = LogBuilder()
    log.beat(T0, group, "old", session_timeout_ms=1_000)
    for t in (*range(0, 40_000, 200), *range(50_000, 60_001, 200)):
        log.tick(T0 + t, partitions=2)
    for t in range(200, 60_001, 200):
        if t == 39_000:
            log.beat(T0 + t, group, "new", session_timeout_ms=3_000, partition=1)
        log.tick(T0 + t, partition=1, partitions=2)
    here, there = ([record for record in log.records if record.partition == number] for number in (0, 1))
    known, forgotten = 3, next(at for at, record in enumerate(here) if record.append_ms > T0 + 1_000 + 20_000)
    rest = ([*here[known:forgotten], *there[:forgotten]], [*here[forgotten:], *there[forgotten:]])
    batches = (here[:known], *rest) if cut else (here[:known], [*here[known:], *there])
    assert _expired(batches) == [("old", 1_000), ("new", 42_000)]


@pytest.mark.parametrize("cut", [False, True])
def test_p3_a_group_seen_in_a_partition_only_after_its_outage_is_not_renewed(*, cut: bool) -> None:
    """P3: a record that waits behind the gap until a tick says what that was does not say that it was there before."""
    group = group_in(1, 2)
    log = LogBuilder()
    log.beat(T0 + 9_000, group, "old", session_timeout_ms=15_000)
    for t in range(9_000, 60_001, 200):
        log.tick(T0 + t, partitions=2)
    for t in (*range(9_000, 10_001, 200), *range(20_200, 60_001, 200)):
        log.tick(T0 + t, partition=1, partitions=2)
        if t == 10_000:
            log.beat(T0 + 20_000, group, "new", session_timeout_ms=15_000, partition=1)
    known = [record for record in log.records if record.append_ms <= T0 + 20_000]
    rest = [record for record in log.records if record.append_ms > T0 + 20_000]
    assert outages_of([record for record in log.records if record.partition == 1]) == [(T0 + 10_000, T0 + 20_000)]
    assert _expired((known, rest) if cut else ([*known, *rest],)) == [("old", 24_000), ("new", 35_000)]


def test_a_record_at_the_deadline_of_another_is_late_wherever_the_batch_ends() -> None:
    """Records of one produce batch share a time, and a bounded batch may end among them: timers due then fire first."""
    for cut in (1, 2, 3):
        log = LogBuilder()
        log.beat(T0, "g", "a", session_timeout_ms=1_000)
        log.add(T0 + 1_000, Event(group_id="h", member_id="x", session_timeout_ms=9_000))
        log.beat(T0 + 1_000, "g", "a", session_timeout_ms=1_000)
        shard = Shard(coordinator=CONFIG, limits=ShardLimits())
        verdicts = shard.apply(*read_records(log.records[:cut])).verdicts
        verdicts += shard.apply(*read_records(log.records[cut:])).verdicts if cut < 3 else []
        assert [(v.member_id, v.time_ms - T0) for v in verdicts if v.expiry_reason] == [("a", 1_000)], cut
