"""What the job as a whole is doing: one row on a compacted topic, the newest of which is how it stands."""

from __future__ import annotations

import enum
from typing import Final

import msgspec

JOB_KEY: Final = "job"
"""The key of every row, so that compaction leaves the newest."""


class Phase(enum.StrEnum):
    """Name what a job is doing, in the order of its life; `retrying` comes after a fault, and leads back."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    LIVE = "live"
    RETRYING = "retrying"
    STOPPED = "stopped"


class BatchFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Hold the figures of one finished batch.

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


class JobRow(msgspec.Struct, kw_only=True):
    """Hold one row of the job topic; `conf/schemas/heartwheel-job.schema.json` describes it.

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
        skew_allowance_ms: the configured allowance, ms.
        shards: how many shards there are.
        version: release of heartwheel.
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
    skew_allowance_ms: int
    shards: int
    version: str

    @property
    def lateness_objective_ms(self) -> int:
        """How long after its deadline an expiration should be in Kafka at the latest, ms.

        Promise P2: two trigger intervals, one batch and the skew allowance. A job that keeps its pace spends at most
        one more interval on a batch.
        """
        return 3 * self.trigger_interval_ms + self.skew_allowance_ms
