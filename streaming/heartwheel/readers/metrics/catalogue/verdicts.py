"""Metrics of expirations, rebalances, and groups in trouble."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

EXPIRATIONS: Final = Metric(
    "heartwheel_expirations_total",
    MetricKind.COUNTER,
    "Members that were expired, by the timer that ended them, or as workers that failed.",
    ("reason",),
)
GROUP_EXPIRATIONS: Final = Metric(
    "heartwheel_group_expirations_total",
    MetricKind.COUNTER,
    "Members that were expired, by group; groups beyond metrics.groups_max share the label other.",
    ("group",),
)
LATENESS: Final = Metric(
    "heartwheel_expiration_lateness_seconds",
    MetricKind.HISTOGRAM,
    "From a member's deadline to the append time of its expiration in Kafka, both by the broker's clock.",
)
LATENESS_OBJECTIVE: Final = Metric(
    "heartwheel_lateness_objective_seconds",
    MetricKind.GAUGE,
    "How late an expiration should be known at most (promise P2): a tick, two trigger intervals, a tick of the wheel.",
)
REBALANCES: Final = Metric(
    "heartwheel_rebalances_total",
    MetricKind.COUNTER,
    "Rebalances that were triggered, by cause; arrivals and departures in presence groups trigger none.",
    ("cause",),
)
GROUP_REBALANCES: Final = Metric(
    "heartwheel_group_rebalances_total",
    MetricKind.COUNTER,
    "Rebalances that were triggered, by group; groups beyond metrics.groups_max share the label other.",
    ("group",),
)
GROUP_REBALANCE_SECONDS: Final = Metric(
    "heartwheel_group_rebalance_seconds_total",
    MetricKind.COUNTER,
    "How long completed rebalances took together, by group; groups beyond metrics.groups_max share the label other.",
    ("group",),
)
REBALANCE_DURATION: Final = Metric(
    "heartwheel_rebalance_duration_seconds",
    MetricKind.HISTOGRAM,
    "How long the join phases of completed rebalances took.",
)
GROUP_TROUBLE: Final = Metric(
    "heartwheel_group_trouble",
    MetricKind.GAUGE,
    "1 for each group in trouble and what is wrong with it: empty, overdue, too_few, storm, flapping, late_polls; "
    "the 50 worst, by the dashboard while the job runs, and by heartwheel watch.",
    ("group", "kind"),
)
GROUPS_IN_TROUBLE: Final = Metric(
    "heartwheel_groups_in_trouble",
    MetricKind.GAUGE,
    "Groups in trouble, by the dashboard while the job runs, and by heartwheel watch; absent if no group is known.",
)
