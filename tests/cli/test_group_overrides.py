"""What groups have of their own in the configuration: every mistake is named at once."""

from __future__ import annotations

import pytest

from heartwheel.engine.heartbeats.config import job_config
from heartwheel.engine.rules.config import GroupOverride
from heartwheel.settings import SettingsError, load_settings

TABLE = "coordinator.group_overrides"


def test_an_override_reaches_the_rules() -> None:
    """The group, a slash, Kafka's name; the unit may be in the name as Kafka has it, or in the value."""
    flags = [f"{TABLE}.orders/consumer.session.timeout=50s", f"{TABLE}.a/b/share.session.timeout.ms=5s"]
    config = job_config(load_settings(overrides=flags).settings, shuffle_partitions=1)
    assert config.coordinator.group_overrides == (
        GroupOverride("orders", "consumer.session.timeout.ms", 50_000),
        GroupOverride("a/b", "share.session.timeout.ms", 5_000),
    )


def test_all_that_is_wrong_is_named_at_once() -> None:
    """No group, no such setting, and a session of no length, in one message with a hint for each."""
    flags = [f"{TABLE}.consumer.session.timeout=5s", f"{TABLE}.g/pace=5s", f"{TABLE}.g/share.session.timeout=0s"]
    with pytest.raises(SettingsError) as refused:
        load_settings(overrides=flags)
    text = str(refused.value)
    assert "3 problems" in text
    assert "names no group" in text
    assert "known here: consumer.session.timeout" in text
    assert "must be at least 1ms" in text
