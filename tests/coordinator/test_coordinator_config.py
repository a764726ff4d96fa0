"""The coordinator's settings refuse what cannot work, by name and value."""

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config


def test_defaults_are_kafkas() -> None:
    """Whoever sets nothing gets what a broker has that was not configured."""
    config = CoordinatorConfig()
    assert (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms) == (6_000, 1_800_000)
    assert (config.group_initial_rebalance_delay_ms, config.group_max_size) == (3_000, 2**31 - 1)
    assert (config.new_member_join_timeout_ms, config.default_session_timeout_ms) == (300_000, 45_000)


@pytest.mark.parametrize("name", ["group_max_size", "group_min_session_timeout_ms", "empty_group_retention_ms"])
def test_settings_are_positive(name: str) -> None:
    """A bound of nothing is refused by its name and value."""
    with pytest.raises(ValueError, match=f"{name} is 0"):
        coordinator_config({name: 0})


def test_session_bounds_are_in_order() -> None:
    """A smallest session timeout above the largest is refused."""
    with pytest.raises(ValueError, match="group_min_session_timeout_ms is 10, more than"):
        CoordinatorConfig(group_min_session_timeout_ms=10, group_max_session_timeout_ms=9)


@pytest.mark.parametrize(("timeout_ms", "accepted"), [(99, False), (100, True), (200, True), (201, False)])
def test_session_bounds_are_inclusive(timeout_ms: int, accepted: bool) -> None:  # noqa: FBT001 - a column of the table
    """A session timeout on a bound is accepted."""
    config = CoordinatorConfig(group_min_session_timeout_ms=100, group_max_session_timeout_ms=200)
    assert config.accepts_session_timeout(timeout_ms) is accepted
