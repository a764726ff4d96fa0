"""Metrics of the process of the job, its batches and its memory."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

JOB_INFO: Final = Metric(
    "heartwheel_job_info",
    MetricKind.GAUGE,
    "1, with the release that runs.",
    ("version",),
)
JOB_PHASE: Final = Metric(
    "heartwheel_job_phase",
    MetricKind.GAUGE,
    "1 for the phase that the job is in, 0 for the others.",
    ("phase",),
)
JOB_START: Final = Metric(
    "heartwheel_job_start_timestamp_seconds",
    MetricKind.GAUGE,
    "When the job's process was started, epoch seconds.",
)
JOB_REPORTED: Final = Metric(
    "heartwheel_job_reported_timestamp_seconds",
    MetricKind.GAUGE,
    "When the job last reported its state, epoch seconds; every five seconds at least while its process lives.",
)
SHARDS: Final = Metric(
    "heartwheel_shards",
    MetricKind.GAUGE,
    "How many shards there are.",
)
TRIGGER_INTERVAL: Final = Metric(
    "heartwheel_trigger_interval_seconds",
    MetricKind.GAUGE,
    "From one batch to the next, as configured.",
)
BATCHES: Final = Metric(
    "heartwheel_batches_total",
    MetricKind.COUNTER,
    "Batches finished since the job was started.",
)
BATCH_DURATION: Final = Metric(
    "heartwheel_batch_duration_seconds",
    MetricKind.HISTOGRAM,
    "How long batches took from trigger to commit.",
)
LAST_BATCH: Final = Metric(
    "heartwheel_last_batch_timestamp_seconds",
    MetricKind.GAUGE,
    "When the newest batch ended, epoch seconds; absent before the first.",
)
BACKLOG: Final = Metric(
    "heartwheel_backlog_records",
    MetricKind.GAUGE,
    "Records that were in the heartbeat topic when the newest batch was planned, and were left for later ones.",
)
FAULTS: Final = Metric(
    "heartwheel_faults_total",
    MetricKind.COUNTER,
    "Faults that the job came back from since it was started.",
)
MEMORY: Final = Metric(
    "heartwheel_resident_memory_bytes",
    MetricKind.GAUGE,
    "Memory that the process and its children hold, by part: driver, jvm, workers; Linux only, pages they share count "
    "for each.",
    ("part",),
)
KAFKA_UP: Final = Metric(
    "heartwheel_kafka_up",
    MetricKind.GAUGE,
    "1 if the brokers answered the last request, else 0.",
)
