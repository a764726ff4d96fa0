"""Every metric: name, kind, labels, meaning, and a sample line.

Prometheus gets exactly the metrics listed here (tests/metrics). Tests compare docs/metrics.md, the alerts and the
Grafana dashboard with this list.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple


class MetricKind(enum.StrEnum):
    """The kind of a metric, which decides what Prometheus can compute from it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric.

    Args:
        name: as in a query; for a histogram without `_bucket`, `_sum` and `_count`.
        kind: its kind.
        help: its meaning, in one sentence.
        sample: a sample line.
        labels: names of its labels.
    """

    name: str
    kind: MetricKind
    help: str
    sample: str
    labels: tuple[str, ...] = ()


_C, _G, _H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

EXPIRATIONS: Final = Metric(
    "heartwheel_expirations_total",
    _C,
    "Members that were expired, by the timer that ended them, or as workers that failed.",
    'heartwheel_expirations_total{reason="session_timeout"} 42.0',
    ("reason",),
)
GROUP_EXPIRATIONS: Final = Metric(
    "heartwheel_group_expirations_total",
    _C,
    "Members that were expired, by group; groups beyond metrics.groups_max share the label other.",
    'heartwheel_group_expirations_total{group="orders"} 17.0',
    ("group",),
)
LATENESS: Final = Metric(
    "heartwheel_expiration_lateness_seconds",
    _H,
    "From a member's deadline to the append time of its expiration in Kafka, both by the broker's clock.",
    'heartwheel_expiration_lateness_seconds_bucket{le="2.0"} 40.0',
)
LATENESS_OBJECTIVE: Final = Metric(
    "heartwheel_lateness_objective_seconds",
    _G,
    "How late an expiration should be known at most (promise P2): a tick, two trigger intervals, a tick of the wheel.",
    "heartwheel_lateness_objective_seconds 1.3",
)
TICK_LAG: Final = Metric(
    "heartwheel_tick_lag_seconds",
    _G,
    "Age of the oldest of the partitions' newest ticks; if it grows, verdicts of quiet partitions are late by as much.",
    "heartwheel_tick_lag_seconds 0.2",
)
TICKLESS: Final = Metric(
    "heartwheel_tickless_partitions",
    _G,
    "Partitions of the heartbeat topic that the ticker cannot write to.",
    "heartwheel_tickless_partitions 0.0",
)
TICKLESS_WHY: Final = Metric(
    "heartwheel_tickless_reason",
    _G,
    "1 for each reason for which the ticker cannot write to a partition; absent while it can.",
    'heartwheel_tickless_reason{reason="the partition has no leader"} 1.0',
    ("reason",),
)
STANDING: Final = Metric(
    "heartwheel_standing_partitions",
    _G,
    "Partitions whose time stands still, or was never known: no member in them expires.",
    "heartwheel_standing_partitions 0.0",
)
OUTAGES: Final = Metric(
    "heartwheel_outages_total",
    _C,
    "Outages of Kafka that were seen in the log since the job was started.",
    "heartwheel_outages_total 1.0",
)
SESSIONS_RENEWED: Final = Metric(
    "heartwheel_sessions_renewed_total",
    _C,
    "Sessions that were renewed because of outages of Kafka.",
    "heartwheel_sessions_renewed_total 400.0",
)
BROKER_SKEW: Final = Metric(
    "heartwheel_broker_clock_skew_seconds",
    _G,
    "How far the clocks of the partitions' leaders are apart, by the append times of ticks; absent while unknown.",
    "heartwheel_broker_clock_skew_seconds 0.002",
)
UNTIMED: Final = Metric(
    "heartwheel_untimed_records_total",
    _C,
    "Records of the heartbeat topic that carried their producer's time, which makes no time pass.",
    "heartwheel_untimed_records_total 0.0",
)
STEPPED_BACK: Final = Metric(
    "heartwheel_clock_stepped_back_seconds",
    _G,
    "By how much the newest append time of a partition is behind the partition's time; the most of all partitions.",
    "heartwheel_clock_stepped_back_seconds 0.0",
)
REBALANCES: Final = Metric(
    "heartwheel_rebalances_total",
    _C,
    "Rebalances that were triggered, by cause; arrivals and departures in presence groups trigger none.",
    'heartwheel_rebalances_total{cause="member_expired"} 12.0',
    ("cause",),
)
GROUP_REBALANCES: Final = Metric(
    "heartwheel_group_rebalances_total",
    _C,
    "Rebalances that were triggered, by group; groups beyond metrics.groups_max share the label other.",
    'heartwheel_group_rebalances_total{group="orders"} 9.0',
    ("group",),
)
REBALANCE_DURATION: Final = Metric(
    "heartwheel_rebalance_duration_seconds",
    _H,
    "How long the join phases of completed rebalances took.",
    'heartwheel_rebalance_duration_seconds_bucket{le="5.0"} 8.0',
)
GROUP_TROUBLE: Final = Metric(
    "heartwheel_group_trouble",
    _G,
    "1 for each group in trouble and what is wrong with it: empty, overdue, too_few, storm, flapping, late_polls; "
    "the 50 worst, by the dashboard alone, while the job runs.",
    'heartwheel_group_trouble{group="orders",kind="storm"} 1.0',
    ("group", "kind"),
)
GROUPS_IN_TROUBLE: Final = Metric(
    "heartwheel_groups_in_trouble",
    _G,
    "Groups in trouble, by the dashboard alone; absent while the job does not run, or no group is known.",
    "heartwheel_groups_in_trouble 2.0",
)
MEMBERS: Final = Metric(
    "heartwheel_members",
    _G,
    "Members, pending ones and those of the canary included, by shard.",
    'heartwheel_members{shard="0"} 25.0',
    ("shard",),
)
GROUPS: Final = Metric(
    "heartwheel_groups",
    _G,
    "Groups, those without members included, by Kafka's name of their state.",
    'heartwheel_groups{state="Stable"} 18.0',
    ("state",),
)
GROUPS_BY_KIND: Final = Metric(
    "heartwheel_groups_by_kind",
    _G,
    "Groups, by kind: classic, loaded, presence, consumer, share or streams.",
    'heartwheel_groups_by_kind{kind="classic"} 18.0',
    ("kind",),
)
CLOCK: Final = Metric(
    "heartwheel_clock_timestamp_seconds",
    _G,
    "Up to where the timers of a shard have fired, epoch seconds; absent before its first live trigger.",
    'heartwheel_clock_timestamp_seconds{shard="0"} 1.7636e+09',
    ("shard",),
)
CLOCK_HELD: Final = Metric(
    "heartwheel_clock_held",
    _G,
    "1 while the clock of a shard stands still because a backlog is being read, else 0.",
    'heartwheel_clock_held{shard="0"} 0.0',
    ("shard",),
)
STATE_BYTES: Final = Metric(
    "heartwheel_state_bytes",
    _G,
    "Size of the encoded state of a shard.",
    'heartwheel_state_bytes{shard="0"} 51234.0',
    ("shard",),
)
WHEEL_TIMERS: Final = Metric(
    "heartwheel_wheel_timers",
    _G,
    "Timers in the wheels of all shards, by level; 0 is the finest.",
    'heartwheel_wheel_timers{level="0"} 31.0',
    ("level",),
)
WHEEL_MOVES: Final = Metric(
    "heartwheel_wheel_moves_total",
    _C,
    "Timers that were moved because their deadline had changed or their level was too coarse.",
    "heartwheel_wheel_moves_total 2048.0",
)
WHEEL_FIRES: Final = Metric(
    "heartwheel_wheel_fires_total",
    _C,
    "Timers that came out of the wheels; those of groups that the rules run in the same batch are cancelled instead.",
    "heartwheel_wheel_fires_total 96.0",
)
HEARTBEATS: Final = Metric(
    "heartwheel_heartbeats_total",
    _C,
    "Records of the heartbeat topic that were decided on.",
    "heartwheel_heartbeats_total 981234.0",
)
REQUEST_ERRORS: Final = Metric(
    "heartwheel_request_errors_total",
    _C,
    "Requests that a coordinator answers with an error, by Kafka's name of it.",
    'heartwheel_request_errors_total{error="UNKNOWN_MEMBER_ID"} 3.0',
    ("error",),
)
REJECTS: Final = Metric(
    "heartwheel_rejects_total",
    _C,
    "Records that could not be used and were put on the rejects topic, by cause.",
    'heartwheel_rejects_total{cause="not_json"} 5.0',
    ("cause",),
)
CLOCK_STEPS_BACK: Final = Metric(
    "heartwheel_clock_steps_back_total",
    _C,
    "Records whose append time was before that of an earlier one of their partition; they count as at that time.",
    "heartwheel_clock_steps_back_total 0.0",
)
STRAY_GROUPS: Final = Metric(
    "heartwheel_stray_groups",
    _G,
    "Groups with records in more than one partition; at most ten of each shard are counted.",
    "heartwheel_stray_groups 0.0",
)
JOB_INFO: Final = Metric(
    "heartwheel_job_info",
    _G,
    "1, with the release that runs.",
    'heartwheel_job_info{version="0.1.0"} 1.0',
    ("version",),
)
JOB_PHASE: Final = Metric(
    "heartwheel_job_phase",
    _G,
    "1 for the phase that the job is in, 0 for the others.",
    'heartwheel_job_phase{phase="live"} 1.0',
    ("phase",),
)
JOB_START: Final = Metric(
    "heartwheel_job_start_timestamp_seconds",
    _G,
    "When the job's process was started, epoch seconds.",
    "heartwheel_job_start_timestamp_seconds 1.7636e+09",
)
JOB_REPORTED: Final = Metric(
    "heartwheel_job_reported_timestamp_seconds",
    _G,
    "When the job last reported its state, epoch seconds; every five seconds at least while its process lives.",
    "heartwheel_job_reported_timestamp_seconds 1.7636e+09",
)
SHARDS: Final = Metric(
    "heartwheel_shards",
    _G,
    "How many shards there are.",
    "heartwheel_shards 8.0",
)
TRIGGER_INTERVAL: Final = Metric(
    "heartwheel_trigger_interval_seconds",
    _G,
    "From one batch to the next, as configured.",
    "heartwheel_trigger_interval_seconds 1.0",
)
BATCHES: Final = Metric(
    "heartwheel_batches_total",
    _C,
    "Batches finished since the job was started.",
    "heartwheel_batches_total 3600.0",
)
BATCH_DURATION: Final = Metric(
    "heartwheel_batch_duration_seconds",
    _H,
    "How long batches took from trigger to commit.",
    'heartwheel_batch_duration_seconds_bucket{le="0.5"} 3550.0',
)
LAST_BATCH: Final = Metric(
    "heartwheel_last_batch_timestamp_seconds",
    _G,
    "When the newest batch ended, epoch seconds; absent before the first.",
    "heartwheel_last_batch_timestamp_seconds 1.7636e+09",
)
BACKLOG: Final = Metric(
    "heartwheel_backlog_records",
    _G,
    "Records that were in the heartbeat topic when the newest batch was planned, and were left for later ones.",
    "heartwheel_backlog_records 0.0",
)
FAULTS: Final = Metric(
    "heartwheel_faults_total",
    _C,
    "Faults that the job came back from since it was started.",
    "heartwheel_faults_total 1.0",
)
MEMORY: Final = Metric(
    "heartwheel_resident_memory_bytes",
    _G,
    "Memory that the process and its children hold, by part: driver, jvm, workers; Linux only, pages they share count "
    "for each.",
    'heartwheel_resident_memory_bytes{part="jvm"} 8.1e+08',
    ("part",),
)
KAFKA_UP: Final = Metric(
    "heartwheel_kafka_up",
    _G,
    "1 if the brokers answered the last request, else 0.",
    "heartwheel_kafka_up 1.0",
)
CANARY_PROBES: Final = Metric(
    "heartwheel_canary_probes_total",
    _C,
    "Silences of the canary's members, by outcome: in_time, late, missed, void; false is an expiration without one.",
    'heartwheel_canary_probes_total{outcome="in_time"} 240.0',
    ("outcome",),
)
CANARY_LATENESS: Final = Metric(
    "heartwheel_canary_lateness_seconds",
    _H,
    "From the deadline of a canary's member to the append time of its expiration in Kafka.",
    'heartwheel_canary_lateness_seconds_bucket{le="2.0"} 239.0',
)
CANARY_PENDING: Final = Metric(
    "heartwheel_canary_pending",
    _G,
    "Silences of the canary's members that are over and whose expiration is not known yet.",
    "heartwheel_canary_pending 1.0",
)
CANARY_HEARTBEATS: Final = Metric(
    "heartwheel_canary_heartbeats_total",
    _C,
    "Heartbeats that the canary sent.",
    "heartwheel_canary_heartbeats_total 2210.0",
)
CANARY_UNANSWERED: Final = Metric(
    "heartwheel_canary_unanswered_total",
    _C,
    "Heartbeats of the canary that no broker acknowledged in time.",
    "heartwheel_canary_unanswered_total 0.0",
)

SECTIONS: Final[dict[str, tuple[Metric, ...]]] = {
    "Verdicts": (
        EXPIRATIONS,
        GROUP_EXPIRATIONS,
        LATENESS,
        LATENESS_OBJECTIVE,
        REBALANCES,
        GROUP_REBALANCES,
        REBALANCE_DURATION,
        GROUP_TROUBLE,
        GROUPS_IN_TROUBLE,
    ),
    "Shards": (
        MEMBERS,
        GROUPS,
        GROUPS_BY_KIND,
        CLOCK,
        CLOCK_HELD,
        STATE_BYTES,
        WHEEL_TIMERS,
        WHEEL_MOVES,
        WHEEL_FIRES,
        HEARTBEATS,
        REQUEST_ERRORS,
        REJECTS,
        CLOCK_STEPS_BACK,
        STRAY_GROUPS,
    ),
    "Job": (
        JOB_INFO,
        JOB_PHASE,
        JOB_START,
        JOB_REPORTED,
        SHARDS,
        TRIGGER_INTERVAL,
        BATCHES,
        BATCH_DURATION,
        LAST_BATCH,
        BACKLOG,
        FAULTS,
        MEMORY,
        KAFKA_UP,
    ),
    "Time": (
        TICK_LAG,
        TICKLESS,
        TICKLESS_WHY,
        STANDING,
        OUTAGES,
        SESSIONS_RENEWED,
        UNTIMED,
        STEPPED_BACK,
        BROKER_SKEW,
    ),
    "Canary": (
        CANARY_PROBES,
        CANARY_LATENESS,
        CANARY_PENDING,
        CANARY_HEARTBEATS,
        CANARY_UNANSWERED,
    ),
}
"""The metrics by subject."""

CATALOGUE: Final = tuple(metric for section in SECTIONS.values() for metric in section)
"""Every metric."""
