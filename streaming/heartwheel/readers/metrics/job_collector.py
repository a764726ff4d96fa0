"""Metrics of the job as a whole, from its own newest row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.metrics import catalogue
from heartwheel.readers.metrics.families import family, histogram
from heartwheel.wire.job import BatchFigures, JobRow, Phase

BATCH_BUCKETS_S: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the durations of batches, seconds."""


class JobCollector(Collector):
    """The figures of the newest row of the job, and a histogram of its batches.

    Args:
        registry: where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.row: JobRow | None = None
        self._durations = histogram(catalogue.BATCH_DURATION, registry, buckets=BATCH_BUCKETS_S)
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
                yield family(catalogue.LAST_BATCH, row.last_batch.ended_ms / 1000)
                yield family(catalogue.BACKLOG, row.last_batch.behind)


def _standing(row: JobRow) -> Iterator[Family]:
    yield family(catalogue.JOB_INFO, {row.version: 1})
    yield family(catalogue.JOB_PHASE, {phase.value: phase is row.phase for phase in Phase})
    yield family(catalogue.JOB_START, row.started_ms / 1000)
    yield family(catalogue.JOB_REPORTED, row.at_ms / 1000)
    yield family(catalogue.SHARDS, row.shards)
    yield family(catalogue.TRIGGER_INTERVAL, row.trigger_interval_ms / 1000)
    yield family(catalogue.LATENESS_OBJECTIVE, row.lateness_objective_ms / 1000)
    yield family(catalogue.BATCHES, row.batches)
    yield family(catalogue.FAULTS, row.faults)
    yield family(catalogue.STANDING, row.standing)
    yield family(catalogue.OUTAGES, row.outages)
    yield family(catalogue.SESSIONS_RENEWED, row.sessions_renewed)
    yield family(catalogue.UNTIMED, row.untimed)
    yield family(catalogue.STEPPED_BACK, row.stepped_back_ms / 1000)
    if row.ticker is not None:
        yield family(catalogue.TICK_LAG, row.ticker.lag_ms / 1000)
        yield family(catalogue.TICKLESS, row.ticker.silent_count)
        if row.ticker.skew_ms is not None:
            yield family(catalogue.BROKER_SKEW, row.ticker.skew_ms / 1000)
        reasons = {each.reason for each in row.ticker.silent} | ({row.ticker.reason} - {""})
        yield family(catalogue.TICKLESS_WHY, dict.fromkeys(sorted(reasons), 1))
