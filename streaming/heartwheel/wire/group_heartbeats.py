"""Heartbeats of the groups with member epochs: consumer (KIP-848), share (KIP-932) and streams (KIP-1071).

One request joins, keeps alive, gives partitions back and leaves, by its `member_epoch`. An assignor that no log shows
decides which partitions a member gets, so a heartbeat has the fields of its answer, too, if the source knows them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from heartwheel.wire.event_codec import check_ids, decode_value
from heartwheel.wire.events import TIMEOUT_MS_MAX, RejectCause, RejectedError

JOIN_EPOCH: Final = 0
"""The epoch of a heartbeat that joins: `ConsumerGroupHeartbeatRequest.JOIN_GROUP_MEMBER_EPOCH`."""

LEAVE_STATIC_EPOCH: Final = -2
"""The epoch of a static member that leaves temporarily: `LEAVE_GROUP_STATIC_MEMBER_EPOCH`."""

UNCHANGED: Final = -1
"""The rebalance timeout of a request that does not change it."""

HEARTBEAT_BYTES_MAX: Final = 128 << 10
"""Longest heartbeat, bytes: the state has each member with the fields of its heartbeats, so this bounds the state.
Ten thousand partitions take half of it."""

Partitions = Mapping[str, tuple[int, ...]]
"""Partitions by topic id (in a streams group: by the kind of task and the subtopology)."""


TASK_KINDS: Final = ("activeTasks", "standbyTasks", "warmupTasks")
"""The kinds of task of a streams member, as Kafka's requests name them: `Partitions` has `KIND/SUBTOPOLOGY`."""


class HeartbeatType(enum.StrEnum):
    """The kinds of request, each with the protocol of its group."""

    CONSUMER = "consumer_heartbeat"
    SHARE = "share_heartbeat"
    STREAMS = "streams_heartbeat"


_Epoch = Annotated[int, msgspec.Meta(ge=LEAVE_STATIC_EPOCH, le=2**31 - 1)]
_Timeout = Annotated[int, msgspec.Meta(ge=UNCHANGED, le=TIMEOUT_MS_MAX)]
_Version = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]


class GroupHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One heartbeat, and its answer as far as it is known.

    Args:
        type: the kind of request.
        group_id: the group it was sent to, never empty.
        member_id: the sender; empty only in a first join of version 0, whose answer has the id.
        member_epoch: 0 joins, above 0 keeps alive, -1 leaves, -2 leaves temporarily as a static member.
        group_instance_id: the static member's instance id, if it is one.
        rebalance_timeout_ms: how long the member may take to give partitions back, ms; -1 or nothing: as before.
        owned: the partitions that the member says it owns; `None`: as before.
        revoking: whether the member is asked to give partitions back, for sources that know only that.
        subscribed_topics: the topics that the member subscribes to; `None`: as before.
        subscribed_regex: the pattern that the member subscribes to; `None`: as before.
        rack_id: the rack of a streams member; `None`: as before.
        process_id: the process of a streams member, which all its threads share; `None`: as before.
        client_tags: the client tags of a streams member; `None`: as before.
        topology_epoch: the epoch of a streams member's topology; `None`: as before.
        client_id: shown to people.
        client_host: shown to people.
        api_version: version of the request, if the source knows it.
        answer_member_id: the member id of the answer, if known.
        answer_member_epoch: the member epoch of the answer, if known; only accepted requests have it.
        assignment: the assignment of the answer; `None`: as before, or unknown.
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
    rack_id: str | None = None
    process_id: str | None = None
    client_tags: dict[str, str] | None = None
    topology_epoch: int | None = None
    client_id: str | None = None
    client_host: str | None = None
    api_version: _Version | None = None
    answer_member_id: str | None = None
    answer_member_epoch: _Epoch | None = None
    assignment: dict[str, tuple[int, ...]] | None = None

    @property
    def sender(self) -> str:
        """The member's id: its own, or the one in the answer."""
        return self.member_id or self.answer_member_id or ""

    @property
    def accepted(self) -> bool | None:
        """Whether a broker is known to have accepted it: its answer has an epoch; `None` leaves that to the rules."""
        return True if self.answer_member_epoch is not None else None


_decode: Final = msgspec.json.Decoder(GroupHeartbeat).decode


def decode_group_heartbeat(value: bytes | None, *, size_max: int = HEARTBEAT_BYTES_MAX) -> GroupHeartbeat:
    """Decode one heartbeat.

    Args:
        value: the record's value.
        size_max: longest accepted value, bytes; never more than `HEARTBEAT_BYTES_MAX`.

    Raises:
        RejectedError: it cannot be decoded; the error has the cause that is counted and words for people.
    """
    heartbeat = decode_value(value, _decode, size_max=min(size_max, HEARTBEAT_BYTES_MAX))
    if not heartbeat.group_id:
        raise RejectedError(RejectCause.MISSING_FIELD, "`group_id` is empty")
    if not heartbeat.sender:
        hint = "a heartbeat without `member_id` needs the `answer_member_id` it was answered with"
        raise RejectedError(RejectCause.MISSING_FIELD, hint)
    check_ids(
        (
            heartbeat.group_id,
            heartbeat.member_id,
            heartbeat.answer_member_id,
            heartbeat.group_instance_id,
            heartbeat.client_id,
            heartbeat.client_host,
            heartbeat.rack_id,
            heartbeat.process_id,
        )
    )
    return heartbeat


def decode_accepted_heartbeat(value: bytes) -> GroupHeartbeat:
    """Decode a value that `decode_group_heartbeat` has accepted before, without checking it again."""
    return _decode(value)


def encode_group_heartbeat(heartbeat: GroupHeartbeat) -> bytes:
    """Encode a heartbeat as the JSON that `decode_group_heartbeat` reads, without fields at their default."""
    return msgspec.json.encode(heartbeat)
