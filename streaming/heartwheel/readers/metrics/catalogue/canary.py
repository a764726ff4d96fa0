"""Metrics of the canary's members and of what it found."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

CANARY_PROBES: Final = Metric(
    "heartwheel_canary_probes_total",
    MetricKind.COUNTER,
    "Silences of the canary's members, by outcome: in_time, late, missed, void; false is an expiration without one.",
    'heartwheel_canary_probes_total{outcome="in_time"} 240.0',
    ("outcome",),
)
CANARY_LATENESS: Final = Metric(
    "heartwheel_canary_lateness_seconds",
    MetricKind.HISTOGRAM,
    "From the deadline of a canary's member to the append time of its expiration in Kafka.",
    'heartwheel_canary_lateness_seconds_bucket{le="2.0"} 239.0',
)
CANARY_PENDING: Final = Metric(
    "heartwheel_canary_pending",
    MetricKind.GAUGE,
    "Silences of the canary's members that are over and whose expiration is not known yet.",
    "heartwheel_canary_pending 1.0",
)
CANARY_HEARTBEATS: Final = Metric(
    "heartwheel_canary_heartbeats_total",
    MetricKind.COUNTER,
    "Heartbeats that the canary sent.",
    "heartwheel_canary_heartbeats_total 2210.0",
)
CANARY_UNANSWERED: Final = Metric(
    "heartwheel_canary_unanswered_total",
    MetricKind.COUNTER,
    "Heartbeats of the canary that no broker acknowledged in time.",
    "heartwheel_canary_unanswered_total 0.0",
)
