"""Metrics of the canary's members and of what it found."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

CANARY_PROBES: Final = Metric(
    "heartwheel_canary_probes_total",
    MetricKind.COUNTER,
    "Silences of the canary's members, by outcome: in_time, late, missed, void; false is an expiration without one.",
    ("outcome",),
)
CANARY_LATENESS: Final = Metric(
    "heartwheel_canary_lateness_seconds",
    MetricKind.HISTOGRAM,
    "From the deadline of a canary's member to the append time of its expiration in Kafka.",
)
CANARY_PENDING: Final = Metric(
    "heartwheel_canary_pending",
    MetricKind.GAUGE,
    "Silences of the canary's members that are over and whose expiration is not known yet.",
)
CANARY_HEARTBEATS: Final = Metric(
    "heartwheel_canary_heartbeats_total",
    MetricKind.COUNTER,
    "Heartbeats that the canary sent.",
)
CANARY_UNANSWERED: Final = Metric(
    "heartwheel_canary_unanswered_total",
    MetricKind.COUNTER,
    "Heartbeats of the canary that no broker acknowledged in time.",
)
