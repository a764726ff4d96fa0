"""One shard through many batches, with state, clock and packs as Spark hands them over, and without Spark.

`Simulation` takes the order of things from Spark's planner: end offsets are fetched first, then the batch's timestamp
is taken, then the records up to those offsets are read.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pandas as pd
import pytest

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.shard import CorruptBlobError, ShardLimits, UnknownBlobVersionError
from heartwheel.shard.frame import encode_frame
from heartwheel.spark.job_config import JobConfig
from heartwheel.spark.packer import Packer
from heartwheel.spark.schema import NEW_STATE, STATE_VERSION, StateRow
from heartwheel.spark.state_function import StateVersionError, advance_shard
from heartwheel.testing import LogBuilder, frame_of

T0 = 1_795_239_789_000


def _config(**changes: Any) -> JobConfig:
    fields: dict[str, Any] = {
        "checkpoint": "unused",
        "kafka_options": {},
        "source": "consumer-heartbeats",
        "topics": {"heartbeats": "consumer-heartbeats"},
        "slots": (0,),
        "skew_allowance_ms": 0,
        "coordinator": CoordinatorConfig(group_min_session_timeout_ms=1),
    }
    return JobConfig(**(fields | changes))


class Simulation:
    """Run batches of one shard as the engine does.

    Args:
        log: the heartbeat topic; records with an append time after "now" are not there yet.
        config: the job's.
    """

    def __init__(self, log: LogBuilder, config: JobConfig) -> None:
        self.log = log
        self.config = config
        self.state = NEW_STATE
        self.read = 0
        self.rows: list[dict[str, Any]] = []
        self._packer = Packer("consumer-heartbeats", 1)

    def batch(
        self, now_ms: int, *, stall_ms: int = 0, most: int | None = None, held: bool = False
    ) -> list[dict[str, Any]]:
        """Plan and run one batch: offsets at `now_ms`, the timestamp `stall_ms` later.

        Returns:
            The rows written, by name of the column.
        """
        end = sum(record.append_ms <= now_ms for record in self.log.records)
        end = end if most is None else min(end, self.read + most)
        row, output = self._call(end, now_ms + stall_ms, held=held)
        self.state, self.read = row, end
        rows = output.to_dict("records")
        self.rows += rows
        return rows

    def replay(self, now_ms: int, *, stall_ms: int = 0) -> list[dict[str, Any]]:
        """Run one batch whose commit is lost."""
        end = sum(record.append_ms <= now_ms for record in self.log.records)
        _, output = self._call(end, now_ms + stall_ms, held=False)
        return output.to_dict("records")

    def _call(self, end: int, batch_ms: int, *, held: bool) -> tuple[StateRow, pd.DataFrame]:
        packs: Iterable[tuple[int, bool, bytes]] = ()
        if end > self.read:
            packs = self._packer.pack(frame_of(self.log.records[self.read : end]))
        frame = pd.DataFrame([(rejected, payload) for _, rejected, payload in packs], columns=["rejected", "payload"])
        tick = pd.DataFrame({"rejected": [False], "payload": [None]})
        return advance_shard(self.config, 0, self.state, [frame, tick], batch_ms=batch_ms, held=held)

    def expired(self) -> list[tuple[str, int]]:
        """Name who was expired, and by which deadline."""
        values = [msgspec.json.decode(row["value"]) for row in self.rows if row["topic"] == "expirations"]
        return [(value["member_id"], value["deadline_ms"] - T0) for value in values]


def _steady(members: int, until_ms: int, *, step_ms: int = 1_000, session_ms: int = 3_000) -> LogBuilder:
    log = LogBuilder()
    for t in range(0, until_ms, step_ms):
        for member in range(members):
            log.beat(T0 + t, f"g{member % 3}", f"m{member}", session_timeout_ms=session_ms)
    return log


def test_i10_p1_a_beat_between_offsets_and_timestamp_keeps_its_member_alive() -> None:
    """I10, P1: a record appended after the offsets were fetched but before the timestamp is not overlooked."""
    log = LogBuilder()
    log.beat(T0, "g", "m", session_timeout_ms=1_000)
    log.beat(T0 + 950, "g", "m", session_timeout_ms=1_000)
    job = Simulation(log, _config())
    for now_ms, stall_ms in ((T0, 0), (T0 + 900, 5_000), (T0 + 6_000, 0)):
        job.batch(now_ms, stall_ms=stall_ms)
    # By the timestamps of the batches, T0 + 5,900 and T0 + 6,000, both silences are over; only the second is true.
    assert job.expired() == [("m", 1_950)]


def test_p2_a_silence_is_known_within_two_triggers_and_the_skew() -> None:
    """P2: with batches on time, the batch after the one past deadline + skew names the member, and no earlier one."""
    log = LogBuilder()
    log.beat(T0 + 250, "g", "m", session_timeout_ms=1_000)
    job = Simulation(log, _config(skew_allowance_ms=300))
    named_at = next(t for t in range(0, 10_000, 500) if job.batch(T0 + t) and job.expired())
    assert named_at == 2_500
    assert named_at <= 250 + 1_000 + 300 + 2 * 500


@pytest.mark.parametrize("most", [None, 37, 250])
def test_f2_p5_ten_minutes_down_while_all_beat_on(most: int | None) -> None:
    """F2, P5: 10 minutes down, 1,000 members beat on; caught up in batches of any size, nobody is expired."""
    members = 1_000 if most is None else 20
    log = _steady(members, 640_000, session_ms=3_000, step_ms=2_000)
    job = Simulation(log, _config())
    for t in range(0, 10_000, 1_000):
        job.batch(T0 + t)
    back_ms = T0 + 610_000
    while job.read < sum(record.append_ms <= back_ms for record in log.records):
        job.batch(back_ms, most=most, held=True)
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
    job.batch(T0 + 620_000, held=True)
    for t in range(620_000, 640_000, 1_000):
        job.batch(T0 + t)
    assert sorted(job.expired()) == sorted((f"m{member}", 62_000) for member in range(30))


def test_c1_a_clock_that_steps_back_expires_nobody() -> None:
    """C1: the driver's clock steps back by up to an hour: counted, no false expiry, and time goes on afterwards."""
    log = _steady(10, 60_000)
    job = Simulation(log, _config())
    stepped = 0
    for t in range(0, 60_000, 1_000):
        rows = job.batch(T0 + t, stall_ms=-3_600_000 if 20_000 <= t < 30_000 else 0)
        stepped += msgspec.json.decode(rows[-1]["value"])["counts"].get("trigger_stepped_back", 0)
    assert job.expired() == []
    assert stepped == 10
    for t in range(60_000, 70_000, 1_000):
        job.batch(T0 + t)
    assert len(job.expired()) == 10


def test_skew_allowance_covers_a_broker_that_is_behind() -> None:
    """With the broker's clock 400 ms behind the driver's and an allowance of 500 ms nobody is expired falsely."""
    log = LogBuilder()
    for t in range(0, 10_000, 900):
        log.beat(T0 + t - 400, "g", "m", session_timeout_ms=1_000)
    for allowance_ms, false in ((500, 0), (0, 1)):
        job = Simulation(log, _config(skew_allowance_ms=allowance_ms))
        for t in range(0, 9_000, 100):
            # A record stamped x is in the log from x + 400 on, by the driver's clock.
            job.batch(T0 + t - 400, stall_ms=400)
        assert bool(job.expired()) == bool(false)


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
        job.batch(T0 + restart * 3_000, held=True)
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
    assert {(reject["cause"], reject["offset"]) for reject in rejects} == {("shard_full", 2), ("shard_full", 6)}
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
    """P3: triggers of any length, stalls, held batches in between: the same members by the same deadlines."""
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
            stall_ms = dice.choice((0, 40, 2_000))
            job.batch(now_ms, stall_ms=stall_ms, held=pace > 0 and dice.random() < 0.2)
            # Time goes on during a stall: the next batch is planned after it.
            now_ms += stall_ms + (dice.choice((100, 1_000, 9_000)) if pace else 500)
        job.batch(T0 + 90_000)
        job.batch(T0 + 91_000)
        found.append(sorted(job.expired()))
    assert all(one == two for one, two in itertools.pairwise(found))
    assert len(found[0]) > 12


def test_w7_state_that_can_not_be_read_is_refused_by_name() -> None:
    """W7: a row or a blob of a newer release, random bytes, a blob cut short: refused by name, not taken for empty."""
    job = Simulation(_steady(3, 2_000), _config())
    job.batch(T0 + 2_000)
    good = job.state
    job.state = good._replace(version=STATE_VERSION + 1)
    with pytest.raises(StateVersionError, match=f"version {STATE_VERSION + 1}"):
        job.batch(T0 + 3_000)
    for blob, error in (
        (encode_frame(99, {}), UnknownBlobVersionError),
        (good.blob[: len(good.blob) // 2 // 4 * 4], CorruptBlobError),
        ("AAAA" + good.blob[4:], CorruptBlobError),
        ("not base64!", CorruptBlobError),
    ):
        job.state = good._replace(blob=blob)
        with pytest.raises(error):
            job.batch(T0 + 3_000)
