"""One group of whatever kind, driven request by request, and what was said of it."""

from __future__ import annotations

from typing import Any

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.model import EpochGroup
from heartwheel.engine.rules.manager import ClassicRules
from heartwheel.engine.rules.model import Group
from heartwheel.wire.events import Event, EventType, Protocol
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.verdicts import Kind, Verdict

T0 = 1_700_000_000_000
SETTINGS: dict[str, Any] = {"group_min_session_timeout_ms": 1, "group_initial_rebalance_delay_ms": 0}


class Stage:
    """One group and what was said of it; times are milliseconds after `T0`."""

    def __init__(self, **settings: Any) -> None:
        self.verdicts: list[Verdict] = []
        config = CoordinatorConfig(**{**SETTINGS, **settings})
        self.manager = ClassicRules(Group("g"), EpochConfig(config), self.verdicts.append)

    def beat(self, at_ms: int, member: str, epoch: int, kind: str = "consumer", **fields: Any) -> Answer:
        """Send a heartbeat at a member epoch."""
        heartbeat = GroupHeartbeat(
            type=HeartbeatType(f"{kind}_heartbeat"), group_id="g", member_id=member, member_epoch=epoch, **fields
        )
        return self.manager.apply(heartbeat, T0 + at_ms)

    def event(self, at_ms: int, kind: EventType, member: str = "", **fields: Any) -> Answer:
        """Send a request of the classic protocol."""
        return self.manager.apply(Event(group_id="g", type=kind, member_id=member, **fields), T0 + at_ms)

    def join(self, at_ms: int, member: str, *, sender: str = "", **fields: Any) -> Answer:
        """Send a classic join, by default one without an id that makes a member at once."""
        return self.event(
            at_ms,
            EventType.JOIN,
            sender,
            **{
                "assigned_member_id": member,
                "api_version": 3,
                "session_timeout_ms": 6_000,
                "rebalance_timeout_ms": 2_000,
                "protocol_type": "consumer",
                "protocols": (Protocol("range", "x"),),
                **fields,
            },
        )

    def classic(self) -> None:
        """Let `c` be the one member of a Stable classic group at generation 1."""
        self.join(0, "c")
        self.event(10, EventType.SYNC, "c", generation_id=1, protocol_type="consumer", protocol_name="range")

    def said(self, *kinds: Kind) -> list[tuple[str, str | None, int]]:
        """List the verdicts of some kinds: kind, member, time."""
        return [(v.kind.value, v.member_id, v.time_ms - T0) for v in self.verdicts if v.kind in kinds]

    @property
    def group(self) -> Group | EpochGroup:
        """The group as it is now."""
        return self.manager.group
