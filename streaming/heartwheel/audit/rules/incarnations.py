"""Starts of a worker under one member id: whose turn it is, and which are over. docs/groups.md states the rules."""

from __future__ import annotations

from typing import Final

from heartwheel.audit.rules.model import NEVER, Group, Member

_OVER_MS: Final = 120_000
_OVER_MAX: Final = 1_000


def is_over(group: Group, member_id: str, start: int | None) -> bool:
    """Tell whether a worker's start has said that it ended, no longer ago than a record may be late."""
    told_ms = group.over.get(f"{start} {member_id}")
    return told_ms is not None and group.now_ms < told_ms + _OVER_MS


def note_over(group: Group, member_id: str, start: int) -> None:
    """Note that a worker's start ended; of the many that did only the last thousand are known."""
    name = f"{start} {member_id}"
    group.over.pop(name, None)
    group.over[name] = group.now_ms
    if len(group.over) > _OVER_MAX:
        del group.over[next(iter(group.over))]


def is_older(member: Member, start: int) -> bool:
    """Tell whether a start came before the one that holds the member."""
    return member.incarnation is not None and start < member.incarnation


def hold(member: Member, start: int | None, now_ms: int) -> None:
    """Let the start whose heartbeat this is hold the member; an older one must have been alone for a whole session."""
    if start is not None and is_older(member, start):
        member.older_from_ms = min(member.older_from_ms, now_ms)
        if now_ms < member.older_from_ms + member.session_ms:
            return
    member.incarnation, member.older_from_ms = start, NEVER
