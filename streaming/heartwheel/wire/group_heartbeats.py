"""Heartbeats of the groups that go by member epochs: consumer (KIP-848), share (KIP-932) and streams (KIP-1071).

One request joins, keeps alive, gives partitions back and leaves, by its `member_epoch`. Which partitions a member gets
is decided by an assignor that no log shows, so what the answer said is part of it where the source knows it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from heartwheel.wire.events import TIMEOUT_MS_MAX, RejectCause, RejectedError, check_ids, decode_value

JOIN_EPOCH: Final = 0
"""The epoch of a heartbeat that joins: `ConsumerGroupHeartbeatRequest.JOIN_GROUP_MEMBER_EPOCH`."""

LEAVE_EPOCH: Final = -1
"""The epoch of a heartbeat that leaves: `LEAVE_GROUP_MEMBER_EPOCH`."""

LEAVE_STATIC_EPOCH: Final = -2
"""The epoch of a static member that leaves for a while: `LEAVE_GROUP_STATIC_MEMBER_EPOCH`."""

UNCHANGED: Final = -1
"""The rebalance timeout of a request that does not change it."""

HEARTBEAT_BYTES_MAX: Final = 128 << 10
"""Longest heartbeat, bytes: a member is remembered with what its heartbeats said, so this bounds the state.
Ten thousand partitions take half of it."""

Partitions = Mapping[str, tuple[int, ...]]
"""Partitions by topic id (of a streams group: by the kind of task and the subtopology)."""


class HeartbeatType(enum.StrEnum):
    """Name the request, and with it the protocol of the group."""

    CONSUMER = "consumer_heartbeat"
    SHARE = "share_heartbeat"
    STREAMS = "streams_heartbeat"


_Epoch = Annotated[int, msgspec.Meta(ge=LEAVE_STATIC_EPOCH, le=2**31 - 1)]
_Timeout = Annotated[int, msgspec.Meta(ge=UNCHANGED, le=TIMEOUT_MS_MAX)]
_Version = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]


class GroupHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Hold one heartbeat, and what is known of its answer.

    Args:
        type: which request it was.
        group_id: the group it was sent to, never empty.
        member_id: who sent it; empty only in a first join of version 0, which gets its id by the answer.
        member_epoch: 0 joins, above 0 keeps alive, -1 leaves, -2 leaves for a while as a static member.
        group_instance_id: the static member's instance id, if it is one.
        rebalance_timeout_ms: how long the member may take to give partitions back, ms; -1 or nothing: as before.
        owned: the partitions that the member says it owns; `None`: as before.
        revoking: whether the member is asked to give partitions back, for sources that know no more than that.
        subscribed_topics: `None`: as before.
        subscribed_regex: `None`: as before.
        client_id: shown to people.
        client_host: shown to people.
        api_version: version of the request, if the source knows it.
        answer_member_id: the member id of the answer, if known.
        answer_member_epoch: the member epoch of the answer, if known: only of a request that was accepted.
        assignment: the assignment of the answer; `None`: as before, or not known.
    """

    type: HeartbeatType
    group_id: str
    member_epoch: _Epoch
    member_id: str = ""
    group_instance_id: str | None = None
    rebalance_timeout_ms: _Timeout | None = None
    owned: dict[str, tuple[int, ...]] | None = None
    revoking: bool | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    api_version: _Version | None = None
    answer_member_id: str | None = None
    answer_member_epoch: _Epoch | None = None
    assignment: dict[str, tuple[int, ...]] | None = None

    @property
    def sender(self) -> str:
        """The member's id: its own, or the one that the answer gave it."""
        return self.member_id or self.answer_member_id or ""

    @property
    def accepted(self) -> bool | None:
        """Whether a broker is known to have accepted it, as its answer has an epoch; `None` leaves it to the rules."""
        return True if self.answer_member_epoch is not None else None


_decode: Final = msgspec.json.Decoder(GroupHeartbeat).decode


def decode_group_heartbeat(value: bytes | None, *, size_max: int = HEARTBEAT_BYTES_MAX) -> GroupHeartbeat:
    """Decode one heartbeat, or say by name why it is none.

    Args:
        value: the record's value.
        size_max: longest value that is accepted, bytes; never more than `HEARTBEAT_BYTES_MAX`.

    Raises:
        RejectedError: with the cause that is counted and words for people.
    """
    heartbeat = decode_value(value, _decode, size_max=min(size_max, HEARTBEAT_BYTES_MAX))
    if not heartbeat.group_id:
        raise RejectedError(RejectCause.MISSING_FIELD, "`group_id` is empty")
    if not heartbeat.sender:
        hint = "a heartbeat without `member_id` needs the `answer_member_id` it was answered with"
        raise RejectedError(RejectCause.MISSING_FIELD, hint)
    said = heartbeat
    check_ids(
        (said.group_id, said.member_id, said.answer_member_id, said.group_instance_id, said.client_id, said.client_host)
    )
    return heartbeat


def decode_accepted_heartbeat(value: bytes) -> GroupHeartbeat:
    """Decode a value that `decode_group_heartbeat` has accepted before, without checking it again."""
    return _decode(value)


def encode_group_heartbeat(heartbeat: GroupHeartbeat) -> bytes:
    """Encode a heartbeat as the JSON that `decode_group_heartbeat` reads, fields at their default left out."""
    return msgspec.json.encode(heartbeat)
