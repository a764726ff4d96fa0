"""Metrics of the job as a whole, from its own newest row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.metrics.catalogue import job as about_job
from heartwheel.readers.metrics.catalogue import time as about_time
from heartwheel.readers.metrics.catalogue import verdicts as about_verdicts
from heartwheel.readers.metrics.families import family, histogram
from heartwheel.wire.job import BatchFigures, JobRow, Phase

BATCH_BUCKETS_S: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the durations of batches, seconds."""


class JobCollector(Collector):
    """The figures of the newest row of the job, and a histogram of its batches."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.row: JobRow | None = None
        self._durations = histogram(about_job.BATCH_DURATION, registry, buckets=BATCH_BUCKETS_S)
        self._counted: BatchFigures | None = None
        registry.register(self)

    def take(self, row: JobRow) -> None:
        """Apply a newer row."""
        self.row = row
        if row.last_batch is not None and row.last_batch != self._counted:
            self._counted = row.last_batch
            self._durations.observe(row.last_batch.duration_ms / 1000)

    def collect(self) -> Iterable[Family]:
        """Return the figures for `prometheus_client`; none before the first row."""
        row = self.row
        if row is not None:
            yield from _standing(row)
            if row.last_batch is not None:
                yield family(about_job.LAST_BATCH, row.last_batch.ended_ms / 1000)
                yield family(about_job.BACKLOG, row.last_batch.behind)


def _standing(row: JobRow) -> Iterator[Family]:
    yield family(about_job.JOB_INFO, {row.version: 1})
    yield family(about_job.JOB_PHASE, {phase.value: phase is row.phase for phase in Phase})
    yield family(about_job.JOB_START, row.started_ms / 1000)
    yield family(about_job.JOB_REPORTED, row.at_ms / 1000)
    yield family(about_job.SHARDS, row.shards)
    yield family(about_job.TRIGGER_INTERVAL, row.trigger_interval_ms / 1000)
    yield family(about_verdicts.LATENESS_OBJECTIVE, row.lateness_objective_ms / 1000)
    yield family(about_job.BATCHES, row.batches)
    yield family(about_job.FAULTS, row.faults)
    yield family(about_time.STANDING, row.standing)
    yield family(about_time.OUTAGES, row.outages)
    yield family(about_time.SESSIONS_RENEWED, row.sessions_renewed)
    yield family(about_time.UNTIMED, row.untimed)
    yield family(about_time.STEPPED_BACK, row.stepped_back_ms / 1000)
    if row.ticker is not None:
        yield family(about_time.TICK_LAG, row.ticker.lag_ms / 1000)
        yield family(about_time.TICKLESS, row.ticker.silent_count)
        if row.ticker.skew_ms is not None:
            yield family(about_time.BROKER_SKEW, row.ticker.skew_ms / 1000)
        reasons = {each.reason for each in row.ticker.silent} | ({row.ticker.reason} - {""})
        yield family(about_time.TICKLESS_WHY, dict.fromkeys(sorted(reasons), 1))
