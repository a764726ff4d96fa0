"""Session timeouts of epoch groups: the broker's, or those of the group's own configuration.

It mirrors `GroupMetadataManager.consumerGroupSessionTimeoutMs(groupId)` and its twins for share and streams groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from heartwheel.engine.rules.config import CoordinatorConfig, GroupOverride
from heartwheel.engine.rules.epochs.model import GroupType


class EpochConfig:
    """The configuration of epoch groups at any moment.

    Args:
        coordinator: the broker's configuration, with the groups' own values.
        overrides: further own values. If two are for the same setting, the later one holds.
    """

    def __init__(self, coordinator: CoordinatorConfig, overrides: Iterable[GroupOverride] = ()) -> None:
        policy = coordinator.group_consumer_migration_policy
        self.coordinator = coordinator
        self.upgrade = policy in ("bidirectional", "upgrade")
        """Whether a classic group becomes a consumer group when a member of the new protocol joins."""
        self.downgrade = policy in ("bidirectional", "downgrade")
        """Whether it becomes a classic group again when the last such member is gone."""
        self.before_4_4 = coordinator.kafka_version == "4.3"
        """Whether the brokers are older than Kafka 4.4."""
        self._overrides: dict[tuple[str, str], list[GroupOverride]] = {}
        for one in sorted((*coordinator.group_overrides, *overrides), key=lambda override: override.since_ms):
            self._overrides.setdefault((one.group_id, one.name), []).append(one)

    def session_timeout_ms(self, group_id: str, kind: GroupType, now_ms: int) -> int:
        """Return the session timeout of a member that sends a request now, ms: `consumerGroupSessionTimeoutMs`."""
        return self._value(group_id, kind, "session.timeout.ms", now_ms)

    def assignment_interval_ms(self, group_id: str, kind: GroupType, now_ms: int) -> int:
        """Return how long a group keeps a target assignment before it computes another one, ms."""
        return self._value(group_id, kind, "assignment.interval.ms", now_ms)

    def initial_rebalance_delay_ms(self, group_id: str, now_ms: int) -> int:
        """Return how long a streams group waits for more members before its first target assignment, ms."""
        return self._value(group_id, GroupType.STREAMS, "initial.rebalance.delay.ms", now_ms)

    @property
    def sessions(self) -> int:
        """A number that changes with every session timeout, whether of a kind of group or of one group."""
        of_kinds = [getattr(self.coordinator, f"group_{kind}_session_timeout_ms") for kind in GroupType]
        of_groups = sorted((*key, *((o.since_ms, o.value) for o in found)) for key, found in self._overrides.items())
        return int.from_bytes(hashlib.blake2b(repr((of_kinds, of_groups)).encode(), digest_size=7).digest())

    def max_size(self, kind: GroupType) -> int:
        """Return the most members that a group may have: `throwIfConsumerGroupIsFull` and its twins."""
        size: int = getattr(self.coordinator, f"group_{kind}_max_size")
        return size

    def _value(self, group_id: str, kind: GroupType, name: str, now_ms: int) -> int:
        value: int = getattr(self.coordinator, f"group_{kind}_{name.replace('.', '_')}")
        for override in self._overrides.get((group_id, f"{kind}.{name}"), ()):
            if override.since_ms <= now_ms:
                default: int = getattr(self.coordinator, f"group_{kind}_{name.replace('.', '_')}")
                value = default if override.value is None else override.value
        return value
