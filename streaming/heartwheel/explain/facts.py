"""Facts: what one line of a coordinator says, whatever version wrote it."""

from __future__ import annotations

import enum

import msgspec


class Said(enum.StrEnum):
    """Name what a line says."""

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
    """A line that can be read in more than one way, as a client has chosen an id with the coordinator's words in it."""
    NOTHING = "nothing"
    """A line of the coordinator that is about no member and no rebalance."""


class Fact(msgspec.Struct, kw_only=True, array_like=True, omit_defaults=True, gc=False):
    """Hold what a line says.

    Args:
        order_ms: epoch ms that it is sorted by: its time, made to rise within its file.
        file: number of the file it is from.
        line: number of the line, from 1.
        time_ms: epoch ms.
        coarse: whether that is by the second only.
        zone_assumed: whether the line names no time zone, and nobody else has.
        said: what it says.
        broker_id: who wrote it.
        group_id: about which group; empty where the line does not say.
        member_id: about which member.
        new_member_id: the member that took its place.
        members: the members of a list, or those that a trigger names.
        group_instance_id: of a static member.
        client_id: where the line names it.
        client_host: likewise.
        session_timeout_ms: likewise, ms.
        rebalance_timeout_ms: likewise, ms.
        number: a generation or an epoch.
        size: how many members the group has.
        protocol: the group's type: classic, consumer, share, streams; empty if the line does not tell.
        words: the broker's or the client's own words.
        static: whether the member is static, where the line tells.
        state: of a member of a new group type, `STABLE` when it has what it is to have.
    """

    order_ms: int = 0
    file: int = 0
    line: int = 0
    time_ms: int = 0
    coarse: bool = False
    said: Said = Said.NOTHING
    broker_id: int = -1
    group_id: str = ""
    member_id: str = ""
    new_member_id: str = ""
    members: list[str] = []
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
        """Tell whether another line says the same at the same time: a line that was given twice."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in self.__struct_fields__
            if name not in {"order_ms", "file", "line"}
        )
