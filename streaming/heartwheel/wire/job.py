"""What the job as a whole is doing: one row on a compacted topic, the newest of which is how it stands."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from heartwheel.wire.lateness import lateness_bound_ms

JOB_KEY: Final = "job"
"""The key of every row, so that compaction leaves the newest."""


class Phase(enum.StrEnum):
    """What a job is doing, in the order of its life; `retrying` comes after a fault, and leads back."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    LIVE = "live"
    RETRYING = "retrying"
    STOPPED = "stopped"


class BatchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one finished batch.

    Args:
        batch_id: Spark's number of the batch.
        ended_ms: the driver's wall clock when it was over, epoch ms.
        duration_ms: how long it took, ms.
        read_ms: the part of it in which data was read, decided on and written, ms.
        records: records read from the heartbeat topic.
        behind: records that were in the topic when it was planned and were left for later batches.
        expired: expirations written.
        triggers: rebalance triggers written.
        rejected: records put on the rejects topic.
    """

    batch_id: int
    ended_ms: int
    duration_ms: int
    read_ms: int
    records: int
    behind: int
    expired: int
    triggers: int
    rejected: int


class SilentPartition(msgspec.Struct, frozen=True):
    """A partition that the ticker cannot write to.

    Args:
        partition: of the topic that is read.
        since_ms: how long it has been so, ms.
        reason: why, in words for people.
    """

    partition: int
    since_ms: int
    reason: str


class TopicProblem(msgspec.Struct, frozen=True):
    """A setting of the topic that is read that makes verdicts wrong, or heartbeats vanish.

    Args:
        topic: its name.
        setting: which setting.
        found: its value.
        wanted: what it must be.
    """

    topic: str
    setting: str
    found: str
    wanted: str


class TickerState(msgspec.Struct, frozen=True, kw_only=True):
    """How the ticker does, which carries time to partitions in which nobody else writes.

    Args:
        run: its id, new with every process.
        partitions: how many it writes to.
        written: ticks written.
        failed: ticks lost.
        lag_ms: age of the oldest of the partitions' newest ticks, ms.
        silent_count: partitions that it cannot write to.
        silent: some of them.
        reason: why it writes nothing at all; empty if it does.
        skew_ms: how far the clocks of the partitions' leaders are apart, by the append times of the ticks, ms; `None`
            while that is not known.
    """

    run: str
    partitions: int
    written: int
    failed: int
    lag_ms: int
    silent_count: int
    silent: tuple[SilentPartition, ...]
    reason: str
    skew_ms: int | None = None


class OutageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One outage of Kafka, as far as it concerned the groups.

    Args:
        seen_ms: the driver's wall clock when the batch that read its end was over, epoch ms.
        duration_ms: how long nobody could write, ms; of several partitions the longest.
        sessions_renewed: sessions that it started anew.
    """

    seen_ms: int
    duration_ms: int
    sessions_renewed: int


class JobRow(msgspec.Struct, kw_only=True):
    """One row of the job topic; `conf/schemas/heartwheel-job.schema.json` describes it.

    Args:
        at_ms: the driver's wall clock when the row was made, epoch ms.
        started_ms: when the process was started, epoch ms; another value is another run.
        phase: what it is doing.
        phase_since_ms: since when, epoch ms.
        fault: what went wrong, until a batch has ended again, or why it has stopped if that was no orderly stop; `None`
            otherwise.
        faults: how many faults it came back from since it was started.
        batches: batches finished since it was started.
        records: records read since it was started.
        last_batch: the newest finished batch, if there is one.
        trigger_interval_ms: from one batch to the next, ms.
        tick_interval_ms: from one tick to the next, ms.
        wheel_tick_ms: resolution of the wheel, ms.
        shards: how many shards there are.
        version: release of heartwheel.
        behind_ms: how far the newest record read was behind the driver's clock when its batch began, ms.
        standing: partitions whose time stands still, or was never known.
        ticker: how the ticker does; `None` before it is there.
        outages: how many outages of Kafka there were since the process was started.
        sessions_renewed: how many sessions they started anew.
        last_outage: the newest of them.
        untimed: records read since the process was started that carry their producers' times (CreateTime), by which no
            time passes.
        untimed_at_ms: when the batch was over that read the newest of them, epoch ms; `None` if there was none.
        stepped_back_ms: by how much the newest append time of a partition is behind the partition's time, as the clock
            that stamps it was set back or its new leader's is behind, ms; of several partitions the most.
        topic_problems: what was wrong with the heartbeat topic when it was last looked at, about once a minute.
    """

    at_ms: int
    started_ms: int
    phase: Phase
    phase_since_ms: int
    fault: str | None
    faults: int
    batches: int
    records: int
    last_batch: BatchFigures | None
    trigger_interval_ms: int
    tick_interval_ms: int
    wheel_tick_ms: int
    shards: int
    version: str
    behind_ms: int = 0
    standing: int = 0
    ticker: TickerState | None = None
    outages: int = 0
    sessions_renewed: int = 0
    last_outage: OutageFigures | None = None
    untimed: int = 0
    untimed_at_ms: int | None = None
    stepped_back_ms: int = 0
    topic_problems: tuple[TopicProblem, ...] = ()

    @property
    def lateness_objective_ms(self) -> int:
        """How long after its deadline an expiration should be in Kafka at the latest, ms.

        Promise P2, of a job that keeps its pace.
        """
        return lateness_bound_ms(
            tick_interval_ms=self.tick_interval_ms,
            trigger_interval_ms=self.trigger_interval_ms,
            wheel_tick_ms=self.wheel_tick_ms,
        )
