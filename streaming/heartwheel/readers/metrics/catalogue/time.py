"""Metrics of ticks, outages and the clocks of brokers and producers."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

TICK_LAG: Final = Metric(
    "heartwheel_tick_lag_seconds",
    MetricKind.GAUGE,
    "Age of the oldest of the partitions' newest ticks; if it grows, verdicts of quiet partitions are late by as much.",
)
TICKLESS: Final = Metric(
    "heartwheel_tickless_partitions",
    MetricKind.GAUGE,
    "Partitions of the heartbeat topic that the ticker cannot write to.",
)
TICKLESS_WHY: Final = Metric(
    "heartwheel_tickless_reason",
    MetricKind.GAUGE,
    "1 for each reason for which the ticker cannot write to a partition; absent while it can.",
    ("reason",),
)
STANDING: Final = Metric(
    "heartwheel_standing_partitions",
    MetricKind.GAUGE,
    "Partitions whose time has stopped, or was never known: no member in them expires.",
)
OUTAGES: Final = Metric(
    "heartwheel_outages_total",
    MetricKind.COUNTER,
    "Outages of Kafka that were seen in the log since the job was started.",
)
SESSIONS_RENEWED: Final = Metric(
    "heartwheel_sessions_renewed_total",
    MetricKind.COUNTER,
    "Sessions that were renewed because of outages of Kafka.",
)
UNTIMED: Final = Metric(
    "heartwheel_untimed_records_total",
    MetricKind.COUNTER,
    "Records of the heartbeat topic that carried their producer's time, which makes no time pass.",
)
STEPPED_BACK: Final = Metric(
    "heartwheel_clock_stepped_back_seconds",
    MetricKind.GAUGE,
    "By how much the newest append time of a partition is behind the partition's time; the most of all partitions.",
)
BROKER_SKEW: Final = Metric(
    "heartwheel_broker_clock_skew_seconds",
    MetricKind.GAUGE,
    "How far the clocks of the partitions' leaders are apart, by the append times of ticks; absent while unknown.",
)
