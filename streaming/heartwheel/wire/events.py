"""The events of the heartbeat topic; `event_codec` decodes and encodes them.

One `Event` is one request to a group coordinator. It does not have its time: the record's append time, stamped by the
broker, is the only time that counts, and it is passed along separately.
"""

from __future__ import annotations

import enum
from typing import Annotated, Final, Self

import msgspec

ID_BYTES_MAX: Final = 1024
"""Longest accepted group, member, instance, client or protocol id, in UTF-8 bytes."""

TIMEOUT_MS_MAX: Final = 2**31 - 1
"""Longest accepted timeout, in milliseconds: Kafka's protocol carries timeouts as INT32."""

BATCH_LEAVE_MAX: Final = 10_000
"""Most members that one batch leave may name."""

TEXT_BYTES_MAX: Final = 16 * 1024
"""Most UTF-8 bytes of all ids, names and texts of one event together, without those of a batch leave. The state keeps
each member with the fields of its join, so this bounds the state."""

DETAIL_CHARS_MAX: Final = 500
"""Most characters of a reject's detail: the decoder quotes values, and a value may be a megabyte."""

PROTOCOLS_MAX: Final = 64
"""Most protocols that one join may offer."""

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of consumers: `ConsumerProtocol.PROTOCOL_TYPE`."""

JOB: Final = "job"
"""The client id of a job between two runs: its session is the time until its next success is due."""

JOB_RUN: Final = "job-run"
"""The client id of a job while it runs."""

ACCEPTED: Final = 0
"""The error code of a request that the coordinator accepted."""

FROM_MEMBERS: Final = frozenset({ACCEPTED, 27})
"""The error codes of heartbeats, syncs and commits whose sender is a member at the generation that it names: the
coordinator accepted it, or asked it to join again (REBALANCE_IN_PROGRESS)."""

UNCHECKED_GENERATION: Final = -1
"""The generation of a request without a generation check, as Kafka's `-1`."""


class EventType(enum.StrEnum):
    """The kinds of request."""

    HEARTBEAT = "heartbeat"
    JOIN = "join"
    SYNC = "sync"
    COMMIT = "commit"
    LEAVE = "leave"
    UNLOAD = "unload"
    LOAD = "load"
    EXPIRED = "expired"


_Timeout = Annotated[int, msgspec.Meta(ge=1, le=TIMEOUT_MS_MAX)]
_Generation = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
_Version = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
_ErrorCode = Annotated[int, msgspec.Meta(ge=-1, le=2**15 - 1)]
_Incarnation = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Protocol(msgspec.Struct, frozen=True, gc=False):
    """One protocol that a joining member offers: its name and a digest of its metadata."""

    name: str
    metadata_sha1: str = ""


class Leaving(msgspec.Struct, frozen=True, gc=False):
    """One member of a batch leave, named by its member id, by its instance id, or by both."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One decoded request of the heartbeat topic.

    Args:
        type: the kind of request; a record without a type is a heartbeat.
        group_id: the group it was sent to, never empty.
        member_id: the sender; empty where Kafka allows that (a first join, a leave by instance id).
        generation_id: the member's generation; `-1` asks for no check. For an accepted join the generation in the
            answer, if the source knows the answer.
        group_instance_id: the static member's instance id, if it is one.
        session_timeout_ms: the session timeout that a join (or a heartbeat of a presence group) asks for, milliseconds.
        rebalance_timeout_ms: the rebalance timeout that a join asks for, milliseconds.
        assigned_member_id: the id that the coordinator assigned to a join without one.
        protocol_type: the protocol type of a join or sync, such as `consumer`.
        protocol_name: the protocol that a sync names, such as `range`.
        protocols: the protocols that a join offers, in the order of preference.
        leaving: the members of a batch leave.
        client_id: shown to people.
        client_host: shown to people.
        reason: the client's own words for a join or a leave.
        failure: in the leave of one failed worker how it failed, such as `exit code 3`; may be empty.
        api_version: version of the request, if the source knows it: a join below 4 makes a member at once, and a sync
            from 5 on must name its protocol.
        error_code: Kafka's error code in the answer, if the source knows it: 0 if the coordinator accepted the request.
            A timeout that such a source has not seen is unknown, and is not taken from the settings.
        leader: the leader in the answer to an accepted join, likewise.
        incarnation: in a heartbeat or the leave of one worker of a presence group the start that it comes from. Each
            start has a greater number than the one before it, such as its time in epoch milliseconds.
    """

    group_id: str
    type: EventType = EventType.HEARTBEAT
    member_id: str = ""
    generation_id: _Generation = UNCHECKED_GENERATION
    group_instance_id: str | None = None
    session_timeout_ms: _Timeout | None = None
    rebalance_timeout_ms: _Timeout | None = None
    assigned_member_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    protocols: tuple[Protocol, ...] = ()
    leaving: tuple[Leaving, ...] = ()
    client_id: str | None = None
    client_host: str | None = None
    reason: str | None = None
    failure: str | None = None
    api_version: _Version | None = None
    error_code: _ErrorCode | None = None
    leader: str | None = None
    incarnation: _Incarnation | None = None


class RejectCause(enum.StrEnum):
    """The causes for which a record is written to the rejects topic instead of being used."""

    TOMBSTONE = "tombstone"
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    BAD_FIELD = "bad_field"
    UNKNOWN_TYPE = "unknown_type"
    MISSING_FIELD = "missing_field"
    ID_TOO_LONG = "id_too_long"
    SHARD_FULL = "shard_full"
    GROUP_FULL = "group_full"
    INVALID_SESSION_TIMEOUT = "invalid_session_timeout"
    DUPLICATE_OPERATION = "duplicate_operation"
    UNTRUSTED_FEED = "untrusted_feed"


class RejectedError(ValueError):
    """A record cannot become an event.

    Args:
        cause: the cause that is counted.
        detail: what exactly was wrong, for people; it may quote field paths, but never whole payloads: it is truncated.
    """

    def __init__(self, cause: RejectCause, detail: str) -> None:
        super().__init__(f"{cause}: {detail[:DETAIL_CHARS_MAX]}")
        self.cause = cause
        self.detail = detail if len(detail) <= DETAIL_CHARS_MAX else f"{detail[:DETAIL_CHARS_MAX]} ..."

    def without_frames(self) -> Self:
        """Return the error itself, without its traceback and its context, so that it can be kept as a value.

        Their frames refer to every local variable up the stack, also to the list that the error is added to. Such a
        cycle would keep a whole frame of records until the next garbage collection, which big arrays do not start.
        """
        self.__traceback__ = self.__context__ = None
        return self


class TickError(RejectedError):
    """A record is a tick or a mark: no event, and no reject. Code that counts rejects must skip it."""

    def __init__(self) -> None:
        super().__init__(RejectCause.UNKNOWN_TYPE, "the record is a tick or a mark")
