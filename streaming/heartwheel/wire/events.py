"""The events of the heartbeat topic, and their decoder.

One `Event` is one request to a group coordinator. It does not have its time: the record's append time, stamped by the
broker, is the only time that counts, and it is passed along separately.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b as _blake2b
from typing import Annotated, Final, Self, TypeVar

import msgspec

from heartwheel.wire.passed_on import read_mark
from heartwheel.wire.tick import read_tick

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


T = TypeVar("T")

_decode = msgspec.json.Decoder(Event).decode
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines

_TICKS_FAIL_BY: Final = frozenset({RejectCause.UNKNOWN_TYPE, RejectCause.BAD_FIELD, RejectCause.MISSING_FIELD})
"""The causes with which the decoder of events refuses a tick, depending on the first field that it reads."""

_BEAT: Final = EventType.HEARTBEAT
_NEEDS_MEMBER: Final = frozenset({EventType.HEARTBEAT, EventType.SYNC, EventType.COMMIT, EventType.EXPIRED})


def decode_event(value: bytes | None, *, size_max: int = 1 << 20) -> Event:
    """Decode one record's value.

    Args:
        value: the record's value; `None` is a tombstone.
        size_max: longest accepted value, bytes.

    Raises:
        TickError: it is a tick or a mark, which is no event.
        RejectedError: it is not an event; the error has the cause that is counted and words for people.
    """
    try:
        event = decode_value(value, _decode, size_max=size_max)
    except RejectedError as error:
        if error.cause in _TICKS_FAIL_BY and (read_tick(value) is not None or read_mark(value) is not None):
            raise TickError from None
        raise
    _check(event, len(value or b""))
    return event


def decode_events(values: Iterable[bytes], *, size_max: int = 1 << 20) -> list[Event | RejectedError]:
    """Decode many values as `decode_event` does; a value that cannot be decoded gives its error."""
    found: list[Event | RejectedError] = []
    short = min(ID_BYTES_MAX, size_max)
    for value in values:
        try:
            event = _decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            event = None
        # Nearly every value is a short heartbeat without protocols, in which only an empty id can be wrong.
        plain = event and len(value) <= short and event.type is _BEAT and not event.protocols
        if event and plain and event.group_id and event.member_id:
            found.append(event)
        else:
            found.append(_event_or_error(value, size_max))
    return found


def _event_or_error(value: bytes, size_max: int) -> Event | RejectedError:
    try:
        return decode_event(value, size_max=size_max)
    except RejectedError as error:
        return error.without_frames()


def decode_value(value: bytes | None, decode: Callable[[bytes], T], *, size_max: int) -> T:
    """Decode one record's value with a decoder of msgspec.

    Args:
        value: the record's value; `None` is a tombstone.
        decode: decodes and validates JSON.
        size_max: longest accepted value, bytes.

    Raises:
        RejectedError: it cannot be decoded; the error has the cause that is counted and words for people.
    """
    if value is None:
        raise RejectedError(RejectCause.TOMBSTONE, "the record has no value")
    if len(value) > size_max:
        raise RejectedError(RejectCause.TOO_LARGE, f"{len(value)} bytes, at most {size_max} are accepted")
    try:
        return decode(value)
    except msgspec.ValidationError as error:
        raise RejectedError(_validation_cause(str(error)), str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RejectedError(RejectCause.NOT_JSON, str(error)) from None


def decode_accepted(value: bytes) -> Event:
    """Decode a value that `decode_event` has accepted before, without checking it again."""
    return _decode(value)


def _validation_cause(words: str) -> RejectCause:
    if words.endswith("`$.type`"):
        return RejectCause.UNKNOWN_TYPE
    if "missing required field" in words:
        return RejectCause.MISSING_FIELD
    return RejectCause.BAD_FIELD


def _check(event: Event, value_bytes: int) -> None:
    if not event.group_id:
        raise RejectedError(RejectCause.MISSING_FIELD, "`group_id` is empty")
    if event.type in _NEEDS_MEMBER and not event.member_id:
        raise RejectedError(RejectCause.MISSING_FIELD, f"a {event.type} needs a `member_id`")
    if event.type is EventType.JOIN and not event.member_id and not event.assigned_member_id:
        hint = "a join without `member_id` needs the `assigned_member_id` it was answered with"
        raise RejectedError(RejectCause.MISSING_FIELD, hint)
    if event.type is EventType.LEAVE and not (event.leaving or event.member_id or event.group_instance_id):
        raise RejectedError(RejectCause.MISSING_FIELD, "a leave names no member")
    if event.leaving and event.type is EventType.LEAVE:
        for name in ("failure", "incarnation"):
            if getattr(event, name) is not None:
                raise RejectedError(
                    RejectCause.BAD_FIELD, f"`{name}` is only allowed for one worker, but this leave names several"
                )
    if len(event.protocols) > PROTOCOLS_MAX:
        raise RejectedError(RejectCause.BAD_FIELD, f"{len(event.protocols)} protocols, at most {PROTOCOLS_MAX}")
    # No text is longer than its JSON, and nearly every heartbeat is shorter than the longest id.
    if value_bytes > ID_BYTES_MAX:
        _check_sizes(event)


def _check_sizes(event: Event) -> None:
    if len(event.leaving) > BATCH_LEAVE_MAX:
        raise RejectedError(RejectCause.BAD_FIELD, f"{len(event.leaving)} members leave, at most {BATCH_LEAVE_MAX}")
    check_ids(kept := _kept_ids(event))
    text_bytes = sum(_bytes_of(field) for field in kept if field) if event.protocols else 0
    if text_bytes > TEXT_BYTES_MAX:
        raise RejectedError(
            RejectCause.ID_TOO_LONG, f"ids and names of {text_bytes} bytes together, at most {TEXT_BYTES_MAX}"
        )
    for leaver in event.leaving:
        check_ids((leaver.member_id, leaver.group_instance_id, leaver.reason))


def check_ids(fields: Iterable[str | None]) -> None:
    """Check the length of ids.

    Raises:
        RejectedError: an id is too long.
    """
    for field in fields:
        # A character is at most 4 bytes of UTF-8, so most ids pass without being encoded.
        if field is not None and len(field) * 4 > ID_BYTES_MAX and _bytes_of(field) > ID_BYTES_MAX:
            raise RejectedError(
                RejectCause.ID_TOO_LONG, f"an id of {len(field)} characters, at most {ID_BYTES_MAX} bytes"
            )


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _kept_ids(event: Event) -> list[str | None]:
    ids = [
        event.group_id,
        event.member_id,
        event.group_instance_id,
        event.assigned_member_id,
        event.client_id,
        event.client_host,
        event.protocol_type,
        event.protocol_name,
        event.reason,
        event.failure,
        event.leader,
    ]
    for protocol in event.protocols:
        ids += (protocol.name, protocol.metadata_sha1)
    return ids


def encode_event(event: Event) -> bytes:
    """Encode an event as the JSON that `decode_event` reads, without fields at their default."""
    return _encode(event)


def encode_events(events: Iterable[msgspec.Struct]) -> list[bytes]:
    """Encode many events as `encode_event` does."""
    # The encoder writes no line breaks but those between the events.
    return _encode_lines(events).split(b"\n")[:-1]


def fingerprint(event: msgspec.Struct) -> int:
    """Return a hash of all fields of an event that a rule can see, so that equal fingerprints mean equal effects.

    Unknown fields, white space and the order of keys do not count. Zero and one are never returned: they mean "none"
    and "no longer valid".

    Returns:
        A 64-bit BLAKE2b digest as a signed integer, so that it fits an int64 column.
    """
    number = int.from_bytes(digests([event]), "little", signed=True)
    return number if number not in (0, 1) else 2


def digests(events: Sequence[msgspec.Struct]) -> bytes:
    """Return the digests from which `fingerprint` is computed, for many events, as 8 bytes each in one string."""
    return b"".join([_blake2b(line, digest_size=8).digest() for line in encode_events(events)])
