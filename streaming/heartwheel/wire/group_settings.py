"""Settings that a group can override, by Kafka's names (`GroupConfig`)."""

from __future__ import annotations

from typing import Final

OVERRIDES: Final = (
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.assignment.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.initial.rebalance.delay.ms",
)
"""The settings that a group can override, by Kafka's names: `GroupConfig`."""


def least_of(name: str) -> int:
    """Return the least valid value of a setting, by its name with underscores or dots."""
    return 0 if name.replace(".", "_").endswith(("rebalance_delay_ms", "assignment_interval_ms")) else 1


def split_override(key: str) -> tuple[str, str]:
    """Split the key of an override into the group and Kafka's name, whose unit may be omitted."""
    group_id, _, name = key.rpartition("/")
    return group_id, name if name.endswith(".ms") else f"{name}.ms"
