"""One shard through many batches, with state, clock and packs as Spark hands them over, and without Spark.

Only what was read moves time; the batch's timestamp, which Spark takes from the driver's clock, is in figures alone.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.runtime.state.output import Output
from heartwheel.engine.runtime.state.schema import NEW_STATE, STATE_VERSION, StateRow
from heartwheel.engine.runtime.state.state_function import StateVersionError
from heartwheel.engine.shard import CorruptBlobError, OldBlobVersionError, ShardLimits, UnknownBlobVersionError
from heartwheel.engine.shard.frame import encode_frame
from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.proof.testing import RUN, TICK_INTERVAL_MS, LogBuilder, arrivals
from heartwheel.wire.lateness import lateness_bound_ms
from heartwheel.wire.partitioner import murmur2

T0 = 1_795_239_789_000


def _config(**changes: Any) -> JobConfig:
    fields: dict[str, Any] = {
        "checkpoint": "unused",
        "kafka_options": {},
        "source": "consumer-heartbeats",
        "topics": {"heartbeats": "consumer-heartbeats"},
        "slots": (0,),
        "runs": (RUN,),
        "coordinator": CoordinatorConfig(group_min_session_timeout_ms=1),
    }
    return JobConfig(**(fields | changes))


class Simulation:
    """Run batches of one shard as the engine does, with a ticker beside it.

    Args:
        log: the heartbeat topic; records with an append time after "now" are not there yet.
        ticker: whether a tick comes every 200 ms.
    """

    def __init__(self, log: LogBuilder, config: JobConfig, *, ticker: bool = True) -> None:
        self.config = config
        self.state = NEW_STATE
        self.read = self.batches = 0
        self.rows: list[dict[str, Any]] = []
        self._packer = Packer("consumer-heartbeats", 1)
        self.log = _with_ticks(log) if ticker else log

    def batch(self, now_ms: int, *, clock_ms: int | None = None, most: int | None = None) -> list[dict[str, Any]]:
        """Plan and run one batch of what is in the log at `now_ms`; the driver's clock may show another time.

        Returns:
            The records written, by name of their parts.
        """
        end = sum(record.append_ms <= now_ms for record in self.log.records)
        end = end if most is None else min(end, self.read + most)
        row, output = self._call(end, now_ms if clock_ms is None else clock_ms)
        self.state, self.read = row, end
        self.batches += 1
        rows = [record._asdict() for record in output.records]
        self.rows += rows
        return rows

    def replay(self, now_ms: int) -> list[dict[str, Any]]:
        """Run one batch whose commit is lost."""
        end = sum(record.append_ms <= now_ms for record in self.log.records)
        _, output = self._call(end, now_ms)
        return [record._asdict() for record in output.records]

    def _call(self, end: int, batch_ms: int) -> tuple[StateRow, Output]:
        frame = arrivals(self.log.records[self.read : end], self._packer)
        return advance_shard(self.config, 0, self.state, [frame], batch_ms=batch_ms, batch=self.batches)

    def expired(self) -> list[tuple[str, int]]:
        """Name who was expired, and by which deadline."""
        values = [msgspec.json.decode(row["value"]) for row in self.rows if row["topic"] == "expirations"]
        return [(value["member_id"], value["deadline_ms"] - T0) for value in values]


def _with_ticks(log: LogBuilder) -> LogBuilder:
    """Put ticks between the records of a log, and after them for two minutes."""
    ticks = iter(range(T0, max([T0, *(record.append_ms for record in log.records)]) + 120_000, TICK_INTERVAL_MS))
    ticked, due_ms = LogBuilder(), next(ticks)
    for record in log.records:
        while due_ms <= record.append_ms:
            ticked.tick(due_ms)
            due_ms = next(ticks)
        ticked.add(record.append_ms, record.value)
    for due in ticks:
        ticked.tick(due)
    return ticked


def _steady(members: int, until_ms: int, *, step_ms: int = 1_000, session_ms: int = 3_000) -> LogBuilder:
    log = LogBuilder()
    for t in range(0, until_ms, step_ms):
        for member in range(members):
            log.beat(T0 + t, f"g{member % 3}", f"m{member}", session_timeout_ms=session_ms)
    return log


def test_i10_p1_the_drivers_clock_decides_nothing() -> None:
    """I10, P1: whatever the driver's clock shows, hours ahead or behind, the same silences are found."""
    log = _steady(3, 30_000)
    log.beat(T0 + 30_000, "g0", "m0", session_timeout_ms=3_000)
    found = []
    for off_ms in (0, -3_600_000, 3_600_000):
        job = Simulation(log, _config())
        for t in range(0, 40_000, 1_000):
            job.batch(T0 + t, clock_ms=T0 + t + (off_ms if t > 10_000 else 0))
        found.append(job.expired())
    assert found[0] == [("m1", 32_000), ("m2", 32_000), ("m0", 33_000)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("partitions", [3, 1_000_000])
def test_p2_a_tick_that_names_partitions_that_are_not_there_stops_nobody(partitions: int) -> None:
    """P2: whoever may write to the topic can write a tick; no group waits for a partition that nobody knows of."""
    log = LogBuilder()
    for number in range(20):
        log.beat(T0, f"group-{number}", "m", session_timeout_ms=1_000)
        log.beat(T0, f"group-{number}", "m", session_timeout_ms=1_000, partition=1)
    for t in range(0, 10_000, 200):
        for partition in (0, 1):
            log.tick(T0 + t, partition=partition, partitions=partitions if t == 200 else 2)
    job = Simulation(log, _config(counts=((2, 0),)), ticker=False)
    job.batch(T0 + 100)
    job.batch(T0 + 10_000)
    assert len(job.expired()) == 20
    assert job.state.clock_ms == T0 + 9_800


def test_p2_a_silence_is_known_by_the_first_tick_after_it() -> None:
    """P2: the batch that reads the first tick after the deadline, rounded up to the wheel's, names the member."""
    log = LogBuilder()
    log.beat(T0 + 250, "g", "m", session_timeout_ms=1_000)
    job = Simulation(log, _config())
    named_at = next(t for t in range(0, 10_000, 50) if job.batch(T0 + t) and job.expired())
    assert named_at == 1_400
    assert named_at <= 250 + 1_000 + lateness_bound_ms(
        tick_interval_ms=200, trigger_interval_ms=50, wheel_tick_ms=100, batch_ms=0
    )


@pytest.mark.parametrize("most", [None, 37, 250])
def test_f2_p5_ten_minutes_down_while_all_beat_on(most: int | None) -> None:
    """F2, P5: 10 minutes down, 1,000 members beat on; caught up in batches of any size, nobody is expired."""
    members = 1_000 if most is None else 20
    log = _steady(members, 640_000, session_ms=3_000, step_ms=2_000)
    job = Simulation(log, _config())
    for t in range(0, 10_000, 1_000):
        job.batch(T0 + t)
    back_ms = T0 + 610_000
    while job.read < sum(record.append_ms <= back_ms for record in job.log.records):
        job.batch(back_ms, most=most)
    for t in range(611_000, 640_000, 1_000):
        job.batch(T0 + t)
    assert job.expired() == []
    assert job.state.members == members


def test_f3_p5_those_who_died_while_it_was_down_are_expired_by_their_true_deadlines() -> None:
    """F3: of 100 members some die in minute 1 of 10 down minutes: exactly those, with the deadlines they had."""
    log = LogBuilder()
    for t in range(0, 640_000, 1_000):
        for member in range(100):
            if member >= 30 or t < 60_000:
                log.beat(T0 + t, f"g{member % 7}", f"m{member}", session_timeout_ms=3_000)
    job = Simulation(log, _config())
    job.batch(T0)
    job.batch(T0 + 620_000)
    for t in range(620_000, 640_000, 1_000):
        job.batch(T0 + t)
    assert sorted(job.expired()) == sorted((f"m{member}", 62_000) for member in range(30))


def test_c1_a_leader_whose_clock_is_off_expires_nobody() -> None:
    """C1: a new leader's clock is ten seconds behind, and the next one's right again: time stands still, then jumps."""
    log = LogBuilder()
    for t in range(0, 60_000, 200):
        append_ms = T0 + t - (10_000 if 20_000 <= t < 40_000 else 0)
        log.tick(append_ms, mono_ms=t)
        for member in range(10 if t % 1_000 == 0 else 0):
            log.beat(append_ms, "g", f"m{member}", session_timeout_ms=3_000)
    job = Simulation(log, _config(), ticker=False)
    while job.read < len(log.records):
        job.batch(T0 + 60_000, most=40)
    assert job.expired() == []
    totals = msgspec.json.decode(job.rows[-1]["value"])["totals"]
    assert totals["append_time_stepped_back"] > 0
    assert (totals["outage_clock_jump"], totals["sessions_renewed"]) == (1, 10)


def test_p1_a_topic_that_keeps_create_times_for_a_while_expires_nobody() -> None:
    """P1: somebody alters the topic under the job and back: nobody is expired by that, and the dead are later."""
    log = LogBuilder()
    for t in range(0, 60_000, 200):
        untimed = 20_000 <= t < 40_000
        log.tick(UNTIMED_MS if untimed else T0 + t, mono_ms=t, run="of a job before")
        for member in range(10 if t % 1_000 == 0 else 0):
            if member < 5 or t < 30_000:
                log.beat(UNTIMED_MS if untimed else T0 + t, "g", f"m{member}", session_timeout_ms=3_000)
    job = Simulation(log, _config(), ticker=False)
    while job.read < len(log.records):
        job.batch(T0 + 60_000, most=40)
    assert sorted(job.expired()) == [(f"m{member}", 43_000) for member in range(5, 10)]
    totals = msgspec.json.decode(job.rows[-1]["value"])["totals"]
    assert (totals["records_untimed"], totals["outage_untimed"]) == (100 + 10 * 10 + 10 * 5, 1)


def test_p3_a_batch_that_is_done_again_after_a_growth_says_the_same() -> None:
    """P3: the job dies with its rows written, the topic grows, and a new process does the batch again.

    By the new count the group may be in a partition that nothing was read from, so the next batch waits for that one.
    """
    group = next(name for name in map(str, range(99)) if (murmur2(name.encode()) & 0x7FFFFFFF) % 3 == 2)
    log = LogBuilder()
    log.beat(T0, group, "m", session_timeout_ms=1_000)
    log.beat(T0 + 3_000, group, "m", session_timeout_ms=1_000)
    job = Simulation(_with_ticks(log), _config(counts=((1, 0),)))
    first = job.replay(T0 + 2_000)
    assert "expirations" in [row["topic"] for row in first]
    job.config = _config(counts=((1, 0), (3, 1)))
    assert [row["value"] for row in job.batch(T0 + 2_000)] == [row["value"] for row in first]
    job.batch(T0 + 10_000)
    assert job.expired() == [("m", 1_000)]


def test_p3_a_replayed_batch_writes_the_same_ids() -> None:
    """P3: a batch whose commit was lost is done again from the same state: the same ids, in the same order."""
    log = _steady(10, 5_000)
    job = Simulation(log, _config())
    seen = 0
    for t in range(0, 20_000, 1_000):
        lost = job.replay(T0 + t)
        kept = job.batch(T0 + t)
        assert [row["id"] for row in lost] == [row["id"] for row in kept]
        seen += sum(row["topic"] == "expirations" for row in kept)
    assert seen == 10


def test_f4_twenty_restarts_in_a_row_renew_no_session() -> None:
    """F4: twenty restarts, each with a catch-up batch, neither expire the living nor keep the dead alive."""
    log = _steady(5, 60_000)
    log.beat(T0 + 60_000, "g0", "m0", session_timeout_ms=3_000)
    job = Simulation(log, _config())
    for restart in range(20):
        job.batch(T0 + restart * 3_000)
        job.batch(T0 + restart * 3_000 + 1_000)
        job.batch(T0 + restart * 3_000 + 2_000)
    assert job.expired() == []
    for t in range(60_000, 70_000, 1_000):
        job.batch(T0 + t)
    assert sorted(job.expired()) == [("m0", 63_000), *((f"m{i}", 62_000) for i in range(1, 5))]


def test_p6_a_full_shard_refuses_by_name() -> None:
    """P6: a member over the limit is refused with its record kept; those who are in stay in, room is used again."""
    log = _steady(4, 2_000)
    for t in range(8_000, 10_000, 1_000):
        log.beat(T0 + t, "g9", "m9", session_timeout_ms=3_000)
    job = Simulation(log, _config(limits=ShardLimits(members_max=3)))
    for t in range(0, 10_000, 1_000):
        job.batch(T0 + t)
    rejects = [msgspec.json.decode(row["value"]) for row in job.rows if row["topic"] == "rejects"]
    assert {(reject["cause"], reject["offset"]) for reject in rejects} == {("shard_full", 3), ("shard_full", 12)}
    assert sorted(member for member, _ in job.expired()) == ["m0", "m1", "m3"]
    assert job.state.members == 1


def test_p6_a_batch_over_its_output_is_finished_in_the_next() -> None:
    """P6: a mass expiry over the limit is spread over batches: every verdict once, with its true deadline."""
    log = LogBuilder()
    for member in range(2_000):
        log.beat(T0, f"g{member}", f"m{member}", session_timeout_ms=1_000)
    job = Simulation(log, _config(limits=ShardLimits(verdicts_max=500)))
    sizes = [sum(row["topic"] == "expirations" for row in job.batch(T0 + t)) for t in range(0, 15_000, 1_000)]
    assert sorted(job.expired()) == sorted((f"m{member}", 1_000) for member in range(2_000))
    assert max(sizes) < 2_000


def test_any_pace_of_batches_gives_the_same_expirations() -> None:
    """P3: triggers of any length, bounded batches in between: the same members by the same deadlines."""
    dice = random.Random(7)
    log = LogBuilder()
    for t in range(0, 60_000, 250):
        member = dice.randrange(12)
        log.beat(T0 + t, f"g{member % 4}", f"m{member}", session_timeout_ms=(1_000, 2_500, 7_000)[member % 3])
    found = []
    for pace in range(5):
        job = Simulation(log, _config())
        now_ms = T0
        while now_ms < T0 + 80_000:
            job.batch(now_ms, most=dice.choice((None, 7)) if pace else None)
            now_ms += dice.choice((100, 1_000, 9_000)) if pace else 500
        job.batch(T0 + 91_000)
        found.append(sorted(job.expired()))
    assert all(one == two for one, two in itertools.pairwise(found))
    assert len(found[0]) > 12


def test_w7_state_that_can_not_be_read_is_refused_by_name() -> None:
    """W7: a row or a blob of a newer release, random bytes, a blob cut short: refused by name, not taken for empty."""
    job = Simulation(_steady(3, 2_000), _config())
    job.batch(T0 + 2_000)
    good = job.state
    for version in (STATE_VERSION + 1, STATE_VERSION - 1):
        job.state = good._replace(version=version)
        with pytest.raises(StateVersionError, match=f"version {version}"):
            job.batch(T0 + 3_000)
    for blob, error in (
        (encode_frame(99, {}), UnknownBlobVersionError),
        (encode_frame(1, {}), OldBlobVersionError),
        (good.blob[: len(good.blob) // 2 // 4 * 4], CorruptBlobError),
        ("AAAA" + good.blob[4:], CorruptBlobError),
        ("not base64!", CorruptBlobError),
    ):
        job.state = good._replace(blob=blob)
        with pytest.raises(error):
            job.batch(T0 + 3_000)
