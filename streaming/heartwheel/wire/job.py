"""The state of the job as a whole: rows on a compacted topic, of which the newest one is the present state."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from heartwheel.wire.lateness import lateness_bound_ms

JOB_KEY: Final = "job"
"""The key of every row, so that compaction keeps only the newest row."""


class Phase(enum.StrEnum):
    """The phases of a job, in the order of its life; `retrying` follows a fault, and leads back."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    LIVE = "live"
    RETRYING = "retrying"
    STOPPED = "stopped"


class BatchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one finished batch.

    Args:
        batch_id: Spark's number of the batch.
        ended_ms: the driver's wall clock at its end, epoch ms.
        duration_ms: how long it took, ms.
        read_ms: the part of it in which data was read, decided on and written, ms.
        records: records read from the heartbeat topic.
        behind: records that were in the topic when it was planned and remained for later batches.
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
        partition: number of the partition of the heartbeat topic.
        since_ms: for how long it could not write to it, ms.
        reason: why, in words for people.
    """

    partition: int
    since_ms: int
    reason: str


class TopicProblem(msgspec.Struct, frozen=True):
    """A setting of the heartbeat topic that makes verdicts wrong, or heartbeats vanish.

    Args:
        topic: the topic's name.
        setting: the setting's name.
        found: its value.
        wanted: the value that it must have.
    """

    topic: str
    setting: str
    found: str
    wanted: str


class TickerState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the ticker, which carries time to partitions without other records.

    Args:
        run: its id, new with every process.
        partitions: number of partitions that it writes to.
        written: ticks written.
        failed: ticks lost.
        lag_ms: age of the oldest of the partitions' newest ticks, ms.
        silent_count: partitions that it cannot write to.
        silent: some of them.
        reason: why it writes nothing at all; empty if it writes.
        skew_ms: how far the clocks of the partitions' leaders differ, by the append times of the ticks, ms; `None`
            while unknown.
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
    """One outage of Kafka that affected groups.

    Args:
        seen_ms: the driver's wall clock at the end of the batch that read the outage's end, epoch ms.
        duration_ms: how long no producer could write, ms; of several partitions the longest.
        sessions_renewed: sessions that it restarted.
    """

    seen_ms: int
    duration_ms: int
    sessions_renewed: int


class JobRow(msgspec.Struct, kw_only=True):
    """One row of the job topic; `conf/schemas/heartwheel-job.schema.json` describes it.

    Args:
        at_ms: the driver's wall clock when the row was made, epoch ms.
        started_ms: when the process was started, epoch ms; another value is another run.
        phase: the present phase.
        phase_since_ms: when that phase began, epoch ms.
        fault: what went wrong, until a batch has ended again, or why it has stopped if that was no orderly stop; `None`
            otherwise.
        faults: number of faults that it recovered from since it was started.
        batches: batches finished since it was started.
        records: records read since it was started.
        last_batch: the newest finished batch, if there is one.
        trigger_interval_ms: from one batch to the next, ms.
        tick_interval_ms: from one tick to the next, ms.
        wheel_tick_ms: resolution of the wheel, ms.
        shards: number of shards.
        version: release of heartwheel.
        behind_ms: how far the newest record read was behind the driver's clock when its batch began, ms.
        standing: partitions whose time has stopped, or was never known.
        ticker: the state of the ticker; `None` before it exists.
        outages: number of outages of Kafka since the process was started.
        sessions_renewed: number of sessions that they restarted.
        last_outage: the newest of them.
        untimed: records read since the process was started that carry their producers' times (CreateTime), which do
            not advance time.
        untimed_at_ms: end of the batch that read the newest of them, epoch ms; `None` if there was none.
        stepped_back_ms: by how much the newest append time of a partition is behind the partition's time, because the
            clock that stamps it was set back or its new leader's is behind, ms; of several partitions the most.
        topic_problems: what was wrong with the heartbeat topic at the last check, about once a minute.
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
        """The longest time from a deadline until its expiration should be in Kafka, ms.

        This is promise P2 for a job that keeps its pace.
        """
        return lateness_bound_ms(
            tick_interval_ms=self.tick_interval_ms,
            trigger_interval_ms=self.trigger_interval_ms,
            wheel_tick_ms=self.wheel_tick_ms,
        )
