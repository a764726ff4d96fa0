"""Metrics of `heartwheel watch`: brokers' logs, and their history."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

LINES: Final = Metric(
    "heartwheel_log_lines_total",
    MetricKind.COUNTER,
    "Lines of brokers' logs that were read; it goes on over restarts, as the history counts them.",
)
COORDINATOR_LINES: Final = Metric(
    "heartwheel_log_coordinator_lines_total",
    MetricKind.COUNTER,
    "Those of them that group coordinators wrote; without any, a broker logs above INFO, or coordinates no group.",
)
IGNORED: Final = Metric(
    "heartwheel_log_ignored_lines_total",
    MetricKind.COUNTER,
    "Lines that were left out: forged, unreadable, unknown, too_long.",
    ("reason",),
)
LOST: Final = Metric(
    "heartwheel_log_gaps_total",
    MetricKind.COUNTER,
    "How often a file was gone before it was read since the watcher was started, so that lines may be missing.",
)
BEHIND: Final = Metric(
    "heartwheel_log_behind_bytes",
    MetricKind.GAUGE,
    "Bytes of the logs that are not read yet.",
)
NEWEST: Final = Metric(
    "heartwheel_log_newest_timestamp_seconds",
    MetricKind.GAUGE,
    "The newest time of a coordinator's line, epoch seconds; absent before the first.",
)
STORMS: Final = Metric(
    "heartwheel_storms_total",
    MetricKind.COUNTER,
    "Storms of rebalances that began, by group; groups beyond metrics.groups_max share the label other.",
    ("group",),
)
HISTORY_BYTES: Final = Metric(
    "heartwheel_history_bytes",
    MetricKind.GAUGE,
    "Size of the history's file.",
)
