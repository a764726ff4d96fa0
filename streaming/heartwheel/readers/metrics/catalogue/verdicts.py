"""Metrics of expirations, rebalances, and groups in trouble."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

EXPIRATIONS: Final = Metric(
    "heartwheel_expirations_total",
    MetricKind.COUNTER,
    "Members that were expired, by the timer that ended them, or as workers that failed.",
    'heartwheel_expirations_total{reason="session_timeout"} 42.0',
    ("reason",),
)
GROUP_EXPIRATIONS: Final = Metric(
    "heartwheel_group_expirations_total",
    MetricKind.COUNTER,
    "Members that were expired, by group; groups beyond metrics.groups_max share the label other.",
    'heartwheel_group_expirations_total{group="orders"} 17.0',
    ("group",),
)
LATENESS: Final = Metric(
    "heartwheel_expiration_lateness_seconds",
    MetricKind.HISTOGRAM,
    "From a member's deadline to the append time of its expiration in Kafka, both by the broker's clock.",
    'heartwheel_expiration_lateness_seconds_bucket{le="2.0"} 40.0',
)
LATENESS_OBJECTIVE: Final = Metric(
    "heartwheel_lateness_objective_seconds",
    MetricKind.GAUGE,
    "How late an expiration should be known at most (promise P2): a tick, two trigger intervals, a tick of the wheel.",
    "heartwheel_lateness_objective_seconds 1.3",
)
REBALANCES: Final = Metric(
    "heartwheel_rebalances_total",
    MetricKind.COUNTER,
    "Rebalances that were triggered, by cause; arrivals and departures in presence groups trigger none.",
    'heartwheel_rebalances_total{cause="member_expired"} 12.0',
    ("cause",),
)
GROUP_REBALANCES: Final = Metric(
    "heartwheel_group_rebalances_total",
    MetricKind.COUNTER,
    "Rebalances that were triggered, by group; groups beyond metrics.groups_max share the label other.",
    'heartwheel_group_rebalances_total{group="orders"} 9.0',
    ("group",),
)
REBALANCE_DURATION: Final = Metric(
    "heartwheel_rebalance_duration_seconds",
    MetricKind.HISTOGRAM,
    "How long the join phases of completed rebalances took.",
    'heartwheel_rebalance_duration_seconds_bucket{le="5.0"} 8.0',
)
GROUP_TROUBLE: Final = Metric(
    "heartwheel_group_trouble",
    MetricKind.GAUGE,
    "1 for each group in trouble and what is wrong with it: empty, overdue, too_few, storm, flapping, late_polls; "
    "the 50 worst, by the dashboard alone, while the job runs.",
    'heartwheel_group_trouble{group="orders",kind="storm"} 1.0',
    ("group", "kind"),
)
GROUPS_IN_TROUBLE: Final = Metric(
    "heartwheel_groups_in_trouble",
    MetricKind.GAUGE,
    "Groups in trouble, by the dashboard alone; absent while the job does not run, or no group is known.",
    "heartwheel_groups_in_trouble 2.0",
)
