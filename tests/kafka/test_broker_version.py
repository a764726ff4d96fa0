"""The version of a broker, by real brokers of 4.3.1 and 4.4.0 in one cluster, as during an upgrade."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from heartwheel.front.cli.checks import Status
from heartwheel.front.cli.version_check import check_kafka_version
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.settings import load_settings
from heartwheel.sources.tap.echo import Echo
from support.job import wait_for
from support.second_broker import NODE_ID, second_broker

pytestmark = pytest.mark.kafka


@pytest.mark.proof
def test_each_broker_of_a_cluster_has_its_own_version(tmp_path: Path) -> None:
    """`doctor` names the brokers whose version is not the configured one; a tap asks the broker that it reads."""
    # The older protocols of groups alone: the answer is about the broker's code, not about what is switched on.
    config = {"group.coordinator.rebalance.protocols": "classic,consumer"}
    with (
        EmbeddedKafka(config=config, jars=fetch_jars("broker-4.3")) as old,
        second_broker(old, tmp_path / "new", config=config) as new,
    ):
        for broker in (old, new):
            settings = load_settings(overrides=[f"kafka.bootstrap_servers={broker.bootstrap}"]).settings
            check = check_kafka_version(settings)
            assert check.status is Status.WARN
            assert check.detail.startswith("Kafka 4.3 or older at 1, but coordinator.kafka_version is 4.4")
        for broker_id, version in ((1, "4.3"), (NODE_ID, "4.4")):
            with Echo(old.bootstrap, broker_id, properties={}, token="") as echo:
                wait_for(partial(getattr, echo, "rules"), "the broker's answer")
            assert echo.rules["kafka.version"] == version
