"""Starts of a worker under one member id: which one holds the member, and which have ended (docs/groups.md)."""

from __future__ import annotations

from typing import Final

from heartwheel.proof.audit.rules.model import NEVER, AuditedGroup, AuditedMember

_OVER_MS: Final = 120_000
_OVER_MAX: Final = 1_000


def is_over(group: AuditedGroup, member_id: str, start: int | None) -> bool:
    """Return whether a worker's start has reported its end, no longer ago than a record may be late."""
    ended_ms = group.over.get(f"{start} {member_id}")
    return ended_ms is not None and group.now_ms < ended_ms + _OVER_MS


def note_over(group: AuditedGroup, member_id: str, start: int) -> None:
    """Record that a worker's start ended; only the last thousand ended starts are remembered."""
    name = f"{start} {member_id}"
    group.over.pop(name, None)
    group.over[name] = group.now_ms
    if len(group.over) > _OVER_MAX:
        del group.over[next(iter(group.over))]


def is_older(member: AuditedMember, start: int) -> bool:
    """Return whether a start is older than the one that holds the member."""
    return member.incarnation is not None and start < member.incarnation


def is_outlived(group: AuditedGroup, instance_id: str | None, start: int | None) -> bool:
    """Return whether the holder of an instance id has a newer start than another worker that claims it."""
    owner = None if instance_id is None else group.static.get(instance_id)
    return owner is not None and start is not None and is_older(group.members[owner], start)


def hold(group: AuditedGroup, member: AuditedMember, start: int | None) -> bool:
    """Make the start that sent a heartbeat hold the member; return whether it does.

    An older one must have been alone for a whole session of the start that holds it. Neither an outage nor a time
    without a coordinator counts, as no heartbeat of the other start could arrive then.
    """
    if start is not None and is_older(member, start):
        member.older_from_ms = min(member.older_from_ms, group.now_ms)
        alone_ms = group.now_ms - max(member.older_from_ms, group.renewed_ms, group.read_ms)
        if alone_ms < member.session_ms:
            return False
    member.incarnation, member.older_from_ms = start, NEVER
    return True
