"""The rules of the job beside those of the tapped broker: what differs is said, and nothing else."""

from __future__ import annotations

from typing import Any

from heartwheel.settings import Settings
from heartwheel.sources.tap.broker_rules import broker_rules, differences


class _Admin:
    """A client of a cluster whose broker 1 has some settings."""

    def __init__(self, settings: dict[str, str | None]) -> None:
        self._settings = settings

    def describe_configs(self, asked: list[Any], *, config_filter: str) -> dict[str, Any]:
        """Answer as kafka-python does."""
        assert config_filter == "all"
        (resource,) = asked
        return {"broker": {resource.name: {name: {"value": value} for name, value in self._settings.items()}}}


def _found(**settings: str | None) -> list[str]:
    broker = broker_rules(_Admin({name.replace("_", "."): value for name, value in settings.items()}), 1)
    return differences(Settings().coordinator.model_dump(), broker)


def test_a_broker_with_the_same_rules_differs_in_nothing() -> None:
    """Policies are written in any case, settings of other things do not count, and what it does not know either."""
    same = {"group_min_session_timeout_ms": "6000", "group_consumer_migration_policy": "BIDIRECTIONAL"}
    assert _found(**same, log_retention_ms="5", group_share_max_size=None, kafka_version="4.4") == []


def test_each_rule_that_differs_is_named_on_both_sides() -> None:
    """The broker's name and value, and the setting that must be changed."""
    assert _found(group_initial_rebalance_delay_ms="0", group_max_size="50", kafka_version="4.3") == [
        "the broker has group.initial.rebalance.delay.ms 0, and coordinator.group_initial_rebalance_delay is 3000 ms",
        "the broker has group.max.size 50, and coordinator.group_max_size is 2147483647",
        "the broker has kafka.version 4.3, and coordinator.kafka_version is 4.4",
    ]
