"""Session timeouts of groups that go by member epochs: the broker's, or those of the group's own configuration.

`GroupMetadataManager.consumerGroupSessionTimeoutMs(groupId)` and its twins for share and streams groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.consumer_model import GroupType


@dataclass(frozen=True, slots=True)
class GroupOverride:
    """Hold one value of a group's own configuration.

    Args:
        group_id: whose.
        name: Kafka's name, such as `consumer.session.timeout.ms`.
        value: the value, `None` if the override was taken away.
        since_ms: from when on it holds, epoch ms.
    """

    group_id: str
    name: str
    value: int | None
    since_ms: int = 0


class EpochConfig:
    """Answer what holds for a group at a moment.

    Args:
        coordinator: the broker's configuration.
        overrides: what groups have of their own; of two the later one holds.
        upgrade: whether a classic group becomes a consumer group when a member of the new protocol joins
            (`group.consumer.migration.policy`).
        downgrade: whether it becomes a classic group again when the last such member is gone.
    """

    def __init__(
        self,
        coordinator: CoordinatorConfig,
        overrides: Iterable[GroupOverride] = (),
        *,
        upgrade: bool = True,
        downgrade: bool = True,
    ) -> None:
        self.coordinator = coordinator
        self.upgrade = upgrade
        self.downgrade = downgrade
        self._overrides: dict[tuple[str, str], list[GroupOverride]] = {}
        for one in sorted(overrides, key=lambda override: override.since_ms):
            self._overrides.setdefault((one.group_id, one.name), []).append(one)

    def session_timeout_ms(self, group_id: str, kind: GroupType, now_ms: int) -> int:
        """Tell the session timeout that a member gets that is heard of now, ms: `consumerGroupSessionTimeoutMs`."""
        return self._value(group_id, kind, "session.timeout.ms", now_ms)

    def assignment_interval_ms(self, group_id: str, kind: GroupType, now_ms: int) -> int:
        """Tell how long a group keeps a target assignment before it computes another one, ms."""
        return self._value(group_id, kind, "assignment.interval.ms", now_ms)

    def initial_rebalance_delay_ms(self, group_id: str, now_ms: int) -> int:
        """Tell how long a streams group waits for company before its first target assignment, ms."""
        return self._value(group_id, GroupType.STREAMS, "initial.rebalance.delay.ms", now_ms)

    def _value(self, group_id: str, kind: GroupType, name: str, now_ms: int) -> int:
        value: int = getattr(self.coordinator, f"group_{kind}_{name.replace('.', '_')}")
        for override in self._overrides.get((group_id, f"{kind}.{name}"), ()):
            if override.since_ms <= now_ms:
                default: int = getattr(self.coordinator, f"group_{kind}_{name.replace('.', '_')}")
                value = default if override.value is None else override.value
        return value
