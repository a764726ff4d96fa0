"""Decode, check and encode the events of the heartbeat topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b as _blake2b
from typing import Final, TypeVar

import msgspec

from heartwheel.wire.events import (
    BATCH_LEAVE_MAX,
    ID_BYTES_MAX,
    PROTOCOLS_MAX,
    TEXT_BYTES_MAX,
    Event,
    EventType,
    RejectCause,
    RejectedError,
    TickError,
)
from heartwheel.wire.relayed import read_mark
from heartwheel.wire.tick import read_tick

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
