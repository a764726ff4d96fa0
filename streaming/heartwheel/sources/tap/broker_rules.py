"""The tapped broker's settings, compared with the job's: the job must use the broker's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka.admin import ConfigResource, ConfigResourceType

VERSION: Final = "kafka.version"
"""No setting of Kafka's: the name under which `coordinator.kafka_version` is compared with the broker's version."""


def broker_rules(admin: Any, broker_id: int) -> dict[str, str]:
    """Return a broker's settings by their names, from DescribeConfigs."""
    asked = ConfigResource(ConfigResourceType.BROKER, str(broker_id))
    found = admin.describe_configs([asked], config_filter="all").get("broker", {}).get(str(broker_id), {})
    return {name: str(entry["value"]) for name, entry in found.items() if entry and entry.get("value") is not None}


def differences(coordinator: Mapping[str, Any], broker: Mapping[str, str]) -> list[str]:
    """List the settings in which a job differs from a broker, each in words.

    Args:
        coordinator: the job's settings of `[coordinator]`, by their names.
        broker: the broker's, by theirs; what it does not have is not compared.
    """
    found = []
    for name, value in coordinator.items():
        theirs = broker.get(name.replace("_", "."))
        if theirs is not None and theirs.lower() != str(value).lower():
            ours = f"{value} ms" if name.endswith("_ms") else value
            setting = name.removesuffix("_ms")
            found.append(f"the broker has {name.replace('_', '.')} {theirs}, and coordinator.{setting} is {ours}")
    return found
