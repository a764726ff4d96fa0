"""Metrics of members, groups, timers and records, by shard or in all."""

from __future__ import annotations

from typing import Final

from heartwheel.readers.metrics.metric import Metric, MetricKind

MEMBERS: Final = Metric(
    "heartwheel_members",
    MetricKind.GAUGE,
    "Members, pending ones and those of the canary included, by shard.",
    ("shard",),
)
GROUPS: Final = Metric(
    "heartwheel_groups",
    MetricKind.GAUGE,
    "Groups, those without members included, by Kafka's name of their state.",
    ("state",),
)
GROUPS_BY_KIND: Final = Metric(
    "heartwheel_groups_by_kind",
    MetricKind.GAUGE,
    "Groups, by kind: classic, loaded, presence, consumer, share or streams.",
    ("kind",),
)
CLOCK: Final = Metric(
    "heartwheel_clock_timestamp_seconds",
    MetricKind.GAUGE,
    "Up to where the timers of a shard have fired, epoch seconds; absent before its first live trigger.",
    ("shard",),
)
CLOCK_HELD: Final = Metric(
    "heartwheel_clock_held",
    MetricKind.GAUGE,
    "1 while the clock of a shard is held because a backlog is being read, else 0.",
    ("shard",),
)
STATE_BYTES: Final = Metric(
    "heartwheel_state_bytes",
    MetricKind.GAUGE,
    "Size of the encoded state of a shard, its block files included.",
    ("shard",),
)
WHEEL_TIMERS: Final = Metric(
    "heartwheel_wheel_timers",
    MetricKind.GAUGE,
    "Timers in the wheels of all shards, by level; 0 is the finest.",
    ("level",),
)
WHEEL_MOVES: Final = Metric(
    "heartwheel_wheel_moves_total",
    MetricKind.COUNTER,
    "Timers that were moved because their deadline had changed or their level was too coarse.",
)
WHEEL_FIRES: Final = Metric(
    "heartwheel_wheel_fires_total",
    MetricKind.COUNTER,
    "Timers that came out of the wheels; those of groups that the rules run in the same batch are cancelled instead.",
)
HEARTBEATS: Final = Metric(
    "heartwheel_heartbeats_total",
    MetricKind.COUNTER,
    "Records of the heartbeat topic that were decided on.",
)
REQUEST_ERRORS: Final = Metric(
    "heartwheel_request_errors_total",
    MetricKind.COUNTER,
    "Requests that a coordinator answers with an error, by Kafka's name of it.",
    ("error",),
)
REJECTS: Final = Metric(
    "heartwheel_rejects_total",
    MetricKind.COUNTER,
    "Records that could not be used and were put on the rejects topic, by cause.",
    ("cause",),
)
CLOCK_STEPS_BACK: Final = Metric(
    "heartwheel_clock_steps_back_total",
    MetricKind.COUNTER,
    "Records whose append time was before that of an earlier one of their partition; they count as at that time.",
)
STRAY_GROUPS: Final = Metric(
    "heartwheel_stray_groups",
    MetricKind.GAUGE,
    "Groups with records in more than one partition; at most ten of each shard are counted.",
)
