"""The last events of a member, and the members of a group that sent something lately, as the API shows them."""

from __future__ import annotations

from typing import Self

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.wire.events import EventType


class HistoryBusyError(HeartwheelError):
    """Too many requests are reading heartbeats right now."""


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a member: when it was appended, epoch ms, its type, the generation that it names or -1.

    A join or a leave may have a `reason`, in the client's own words; a leave of a worker that failed has the failure.
    """

    at_ms: int
    type: EventType
    generation_id: int
    reason: str | None = None
    failure: str | None = None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """The time between two events, epoch ms and ms."""

    from_ms: int
    to_ms: int
    gap_ms: int


class MemberHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a member around its last silence, or its latest.

    Args:
        events: the oldest first.
        gaps: between each and the next.
        session_timeout_ms: its session timeout, ms; `None` if that is not known.
        deadline_ms: the deadline of its last silence, epoch ms; `None` if it was not expired, or if it failed.
        truncated: whether a limit has cut the events.
        note: what a person should know about that; empty if nothing.
    """

    events: list[HistoryEvent]
    gaps: list[Gap]
    session_timeout_ms: int | None
    deadline_ms: int | None
    truncated: bool
    note: str

    @classmethod
    def nothing(cls, note: str) -> Self:
        """Return an empty history with the reason."""
        return cls(events=[], gaps=[], session_timeout_ms=None, deadline_ms=None, truncated=False, note=note)


class MemberSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A member that sent something lately: its id, when it last did (epoch ms), how many events were read.

    If its last event is its leave, `left` is the reason that it gave, in the client's own words; empty if none. If it
    failed, `failed` is the failure.
    """

    member_id: str
    last_seen_ms: int
    beats: int
    left: str | None = None
    failed: str | None = None


class GroupTail(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a group that sent something lately, the latest first, and what could not be read, in words."""

    members: list[MemberSeen]
    note: str
