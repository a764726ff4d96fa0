"""Facts: the content of one line of a coordinator, whatever version wrote it."""

from __future__ import annotations

import enum

import msgspec


class FactKind(enum.StrEnum):
    """The kind of a fact."""

    FAILED = "failed"
    PENDING_EXPIRED = "pending_expired"
    PENDING_LEFT = "pending_left"
    LEFT = "left"
    TEMPORARILY_LEFT = "temporarily_left"
    FENCED = "fenced"
    REMOVED_AT_BARRIER = "removed_at_barrier"
    TRIGGER = "trigger"
    STABILIZED = "stabilized"
    ASSIGNED = "assigned"
    EMPTY = "empty"
    NEW_ID = "new_id"
    JOINED = "joined"
    REPLACED = "replaced"
    BUMPED = "bumped"
    REACHED = "reached"
    LOADED = "loaded"
    UNLOADED = "unloaded"
    STARTED = "started"
    STOPPING = "stopping"
    REFUSED = "refused"
    SUSPICIOUS = "suspicious"
    """A line with more than one reading, because a client has chosen an id that contains the coordinator's words."""
    NOTHING = "nothing"
    """A line of the coordinator about no member and no rebalance."""


class Fact(msgspec.Struct, kw_only=True, array_like=True, omit_defaults=True, gc=False):
    """The content of a line.

    Args:
        order_ms: epoch ms to sort by: its time, but never falling within its file.
        line: number of the line, from 1.
        coarse: whether the time has no fraction of a second.
        zone_assumed: whether neither the line nor the user names a time zone.
        group_id: the group; empty where the line does not name it.
        new_member_id: the member that took its place.
        members: the members in a list, or those that a trigger names.
        client_id: where the line names it.
        client_host: where the line names it.
        session_timeout_ms: where the line names it, ms.
        rebalance_timeout_ms: where the line names it, ms.
        protocol: the group's type: classic, consumer, share, streams; empty if the line does not show it.
        words: the broker's or the client's own words.
        static: whether the member is static, where the line shows it.
        state: of a member of a new group type, `STABLE` when it has its target assignment.
    """

    order_ms: int = 0
    file: int = 0
    line: int = 0
    time_ms: int = 0
    coarse: bool = False
    kind: FactKind = FactKind.NOTHING
    broker_id: int = -1
    group_id: str = ""
    member_id: str = ""
    new_member_id: str = ""
    members: tuple[str, ...] = ()
    group_instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    number: int | None = None
    size: int | None = None
    protocol: str = ""
    words: str = ""
    static: bool = False
    state: str = ""
    zone_assumed: bool = False

    def same_as(self, other: Fact) -> bool:
        """Return whether another line has the same content at the same time: a line that was given twice."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if name not in {"order_ms", "file", "line"}
        )
