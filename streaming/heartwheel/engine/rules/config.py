"""The coordinator's settings, under Kafka's names with underscores, and a few of heartwheel's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from heartwheel.wire.group_settings import OVERRIDES, least_of, split_override

MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")
"""The directions in which a group may change between the classic and the consumer protocol:
`ConsumerGroupMigrationPolicy`."""

KAFKA_VERSIONS: Final = ("4.3", "4.4")
"""The versions of Kafka whose rules about groups with member epochs differ, each with all up to the next one."""


@dataclass(frozen=True, slots=True)
class GroupOverride:
    """One value of a group's own configuration.

    Args:
        name: Kafka's name, such as `consumer.session.timeout.ms`.
        value: the value; `None` if the override was removed.
        since_ms: when the override takes effect, epoch ms.
    """

    group_id: str
    name: str
    value: int | None
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """The bounds and the delays of the rules. Times are milliseconds; the defaults are those of Kafka 4.

    Args:
        group_min_session_timeout_ms: shortest session timeout that a member may ask for.
        group_max_session_timeout_ms: longest one.
        presence_max_session_timeout_ms: longest one in presence groups. The session of a scheduled job lasts until its
            next success is due.
        group_initial_rebalance_delay_ms: how long the first join phase of a group waits for more members (KIP-134).
        group_max_size: most members of a group (KIP-389).
        new_member_join_timeout_ms: how long a parked first join is kept; Kafka has it as a constant (KAFKA-7610).
        default_session_timeout_ms: session timeout of members whose join was not seen or names none.
        default_rebalance_timeout_ms: rebalance timeout of such members.
        empty_group_retention_ms: how long a group without members or timers is remembered. A group that comes back
            within that time continues its generations.
        group_consumer_session_timeout_ms: session timeout of the members of consumer groups (KIP-848).
        group_consumer_assignment_interval_ms: least time between two target assignments of a consumer group.
        group_consumer_max_size: most members of a consumer group.
        group_consumer_migration_policy: one of `MIGRATION_POLICIES`.
        group_share_session_timeout_ms: session timeout of the members of share groups (KIP-932).
        group_share_assignment_interval_ms: least time between two target assignments of a share group.
        group_share_max_size: most members of a share group.
        group_streams_session_timeout_ms: session timeout of the members of streams groups (KIP-1071).
        group_streams_assignment_interval_ms: least time between two target assignments of a streams group.
        group_streams_max_size: most members of a streams group.
        group_streams_initial_rebalance_delay_ms: how long the first target assignment of a streams group waits.
        group_overrides: the groups' own values.
        kafka_version: one of `KAFKA_VERSIONS`.

    Raises:
        ValueError: if a bound is not positive or the session timeouts are out of order.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    presence_max_session_timeout_ms: int = 2_073_600_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000
    default_session_timeout_ms: int = 45_000
    default_rebalance_timeout_ms: int = 300_000
    empty_group_retention_ms: int = 86_400_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_migration_policy: str = "bidirectional"
    group_share_session_timeout_ms: int = 45_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_max_size: int = 200
    group_streams_session_timeout_ms: int = 45_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_max_size: int = 2**31 - 1
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_overrides: tuple[GroupOverride, ...] = ()
    kafka_version: str = KAFKA_VERSIONS[-1]

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value, least = getattr(self, name), least_of(name)
            if isinstance(value, int) and value < least:
                raise ValueError(f"{name} is {value}, it must be at least {least}")
        if self.group_consumer_migration_policy not in MIGRATION_POLICIES:
            raise ValueError(f"group_consumer_migration_policy is {self.group_consumer_migration_policy}")
        if self.kafka_version not in KAFKA_VERSIONS:
            raise ValueError(f"kafka_version is {self.kafka_version}, it must be one of {', '.join(KAFKA_VERSIONS)}")
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group_min_session_timeout_ms is {self.group_min_session_timeout_ms}, "
                f"more than group_max_session_timeout_ms, which is {self.group_max_session_timeout_ms}"
            )
        if self.group_min_session_timeout_ms > self.presence_max_session_timeout_ms:
            raise ValueError(
                f"group_min_session_timeout_ms is {self.group_min_session_timeout_ms}, "
                f"more than presence_max_session_timeout_ms, which is {self.presence_max_session_timeout_ms}"
            )

    def accepts_session_timeout(self, timeout_ms: int) -> bool:
        """Return whether a member may ask for this session timeout, both bounds included."""
        return self.group_min_session_timeout_ms <= timeout_ms <= self.group_max_session_timeout_ms

    def accepts_presence_session(self, timeout_ms: int) -> bool:
        """Return whether a member of a presence group may ask for this session timeout, both bounds included."""
        return self.group_min_session_timeout_ms <= timeout_ms <= self.presence_max_session_timeout_ms


def coordinator_config(values: Mapping[str, Any]) -> CoordinatorConfig:
    """Return the rules' configuration from its section of the settings.

    Args:
        values: by the names of `CoordinatorConfig`; `group_overrides` as in the file, `GROUP/NAME` and the value, ms.

    Raises:
        ValueError: if `CoordinatorConfig` raises it, or an override has an unknown name.
    """
    return CoordinatorConfig(**{**values, "group_overrides": tuple(_overrides(values.get("group_overrides", {})))})


def _overrides(values: Mapping[str, int]) -> Iterator[GroupOverride]:
    for key, value in values.items():
        group_id, name = split_override(key)
        if not group_id or name not in OVERRIDES:
            raise ValueError(f"{key} is not GROUP/NAME with NAME one of {', '.join(OVERRIDES)}")
        yield GroupOverride(group_id, name, value)
