"""The check of `heartwheel doctor` for `coordinator.kafka_version`, by which some rules about groups differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from heartwheel.front.cli.checks import DoctorCheck, Status
from heartwheel.settings import Settings

KAFKA_VERSION: Final = "kafka version"
_MEANING: Final = {"4.3": "4.3 or older", "4.4": "4.4 or newer"}


def check_kafka_version(settings: Settings) -> DoctorCheck:
    """Compare the setting with the version of each broker."""
    from heartwheel.kafka.broker_version import broker_version
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, admin_client

    kafka = settings.kafka
    try:
        with admin_client(kafka.bootstrap_servers, kafka.client, doing="list the brokers") as admin:
            brokers = admin.describe_cluster()["brokers"]
        versions = {int(broker["broker_id"]): broker_version(broker, kafka.client) for broker in brokers}
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        return DoctorCheck(KAFKA_VERSION, Status.SKIPPED, f"it could not be checked: {error}")
    return rate_kafka_version(versions, configured=settings.coordinator.kafka_version)


def rate_kafka_version(versions: Mapping[int, str], *, configured: str) -> DoctorCheck:
    """Rate the setting.

    Args:
        versions: `4.3` or `4.4`, by the broker's id.
    """
    others = [str(broker) for broker in sorted(versions) if versions[broker] != configured]
    if not others:
        return DoctorCheck(KAFKA_VERSION, Status.OK, f"Kafka {_MEANING[configured]} at every broker")
    (other,) = {*_MEANING} - {configured}
    detail = f"Kafka {_MEANING[other]} at {', '.join(others)}, but coordinator.kafka_version is {configured}"
    hint = f'set coordinator.kafka_version = "{other}"'
    if len(others) < len(versions):
        hint = "set coordinator.kafka_version when all brokers have the same version"
    return DoctorCheck(KAFKA_VERSION, Status.WARN, f"{detail}: verdicts would follow other rules than Kafka's", hint)
