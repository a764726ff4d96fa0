"""Rows of the output topics as the notifier reads them, made from a few words."""

from __future__ import annotations

from heartwheel.live.told import Source, Told
from heartwheel.verdicts import ExpirationRow, TriggerRow

T0 = 1_795_000_000_000
"""A moment, epoch ms."""


def expired(group: str, member: str, at_ms: int = T0, **changes: object) -> ExpirationRow:
    """Make the expiration of a member of a presence group, whose id is its own."""
    fields: dict[str, object] = {
        "id": f"{group}/{member}/{at_ms}",
        "group_id": group,
        "member_id": member,
        "group_instance_id": None,
        "client_id": None,
        "client_host": "/10.0.0.7",
        "generation_id": 3,
        "reason": "session_timeout",
        "last_seen_ms": at_ms - 6_000,
        "session_timeout_ms": 6_000,
        "deadline_ms": at_ms,
        "detected_ms": at_ms + 1_200,
        "lateness_ms": 1_200,
        "group_state": "Stable",
        "shard": 0,
    }
    return ExpirationRow(**(fields | changes))  # type: ignore[arg-type] - fields by name


def joined(group: str, *members: str, at_ms: int = T0 + 10_000) -> TriggerRow:
    """Make the completed rebalance that brings members into a group."""
    return TriggerRow(
        id=f"{group}/{members}/{at_ms}",
        type="rebalance_completed",
        group_id=group,
        generation_id=4,
        reason="all members joined",
        cause="all_joined",
        time_ms=at_ms,
        deadline_ms=None,
        awaiting=(),
        awaiting_count=0,
        leader=None,
        member_count=len(members),
        removed=(),
        removed_count=0,
        joined=members,
        joined_count=len(members),
        duration_ms=10,
        detected_ms=at_ms + 1_000,
        shard=0,
    )


def told(*rows: ExpirationRow | TriggerRow, offset: int = 0) -> list[Told]:
    """Put rows into partition 0 of their topics, one after the other."""
    return [
        Told(
            Source.EXPIRATIONS if isinstance(row, ExpirationRow) else Source.TRIGGERS, 0, offset + i, row.detected_ms, row
        )
        for i, row in enumerate(rows)
    ]
