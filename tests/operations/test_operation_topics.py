"""The topics of delayed operations: made, verified and kept apart from the engine's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heartwheel.front.cli.app import run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topics import describe_topics
from heartwheel.settings import SettingsError, load_settings


@pytest.mark.kafka
def test_the_topics_of_operations_are_made_on_demand(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """`topics --operations` tells what is missing with the command that makes it, and then makes it, by append time."""
    names = {"operations.topics.requests": topics("requests"), "operations.topics.outcomes": topics("outcomes")}
    names["kafka.topics.rejects"] = topics("rejects")
    flags = [word for key, name in names.items() for word in ("--set", f"{key}={name}")]
    command = ["topics", "--operations", "--bootstrap-servers", kafka_broker.bootstrap, *flags]
    assert run(command) == 1
    assert "heartwheel topics --operations --create" in capsys.readouterr().err
    assert run(["operations", *command[2:]]) == 1
    assert "heartwheel topics --operations --create" in capsys.readouterr().err
    assert run([*command, "--create"]) == 0
    states = describe_topics(kafka_broker.bootstrap, list(names.values()))
    assert {state.settings["message.timestamp.type"] for state in states.values()} == {"LogAppendTime"}
    assert len(states) == 3


def test_two_jobs_can_not_share_a_topic() -> None:
    """A topic name that the heartbeat job uses is refused for operations, with both settings named."""
    with pytest.raises(SettingsError, match=r"operations\.topics\.outcomes") as caught:
        load_settings(overrides=["operations.topics.outcomes=consumer-heartbeats"])
    assert "kafka.topics.heartbeats" in str(caught.value)
