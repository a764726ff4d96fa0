"""The members nearest to their expiry, according to the newest status rows."""

from __future__ import annotations

import msgspec

from heartwheel.readers.live.picture import Picture


class AtRisk(msgspec.Struct, frozen=True, kw_only=True):
    """A member near its expiry.

    Args:
        group_id: its group.
        member_id: its id.
        deadline_ms: it is expired if it sends nothing before this, epoch ms.
        session_timeout_ms: how long its session is, ms; `None` if that is not known.
        shard: the shard that reported it.
        clock_ms: that shard's clock when it reported it, epoch ms.
    """

    group_id: str
    member_id: str
    deadline_ms: int
    session_timeout_ms: int | None
    shard: int
    clock_ms: int


class AtRiskList(msgspec.Struct, frozen=True, kw_only=True):
    """The members nearest to their expiry, nearest first, and the wall clock of the answer, epoch ms."""

    at_ms: int
    rows: list[AtRisk]


def at_risk(picture: Picture, *, now_ms: int, limit: int = 50, canary: bool = False) -> AtRiskList:
    """Return the members nearest to their expiry."""
    with picture.lock:
        rows = [
            AtRisk(
                group_id=member.group_id,
                member_id=member.member_id,
                deadline_ms=member.deadline_ms,
                session_timeout_ms=member.session_timeout_ms or None,
                shard=row.shard,
                clock_ms=row.clock_ms,
            )
            for row in picture.status.values()
            for member in row.at_risk
            if canary or not picture.is_canary(member.group_id)
        ]
    rows.sort(key=lambda row: (row.deadline_ms, row.group_id, row.member_id))
    return AtRiskList(at_ms=now_ms, rows=rows[:limit])
