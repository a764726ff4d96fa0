"""Requests in the records of the heartbeat topic, of any kind of group.

An `Event` is a request of the classic protocol, a `GroupHeartbeat` one of the protocols with member epochs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from heartwheel.wire.event_codec import decode_accepted, decode_event, decode_events, encode_event
from heartwheel.wire.event_codec import fingerprint as digest_of
from heartwheel.wire.events import Event, EventType, RejectedError
from heartwheel.wire.group_heartbeats import (
    JOIN_EPOCH,
    GroupHeartbeat,
    HeartbeatType,
    decode_accepted_heartbeat,
    decode_group_heartbeat,
    encode_group_heartbeat,
)

Request = Event | GroupHeartbeat
"""One request to a group coordinator."""

_HEARTBEATS: Final = frozenset(kind.value for kind in HeartbeatType)
_NAMES: Final = tuple(f'"{kind}"'.encode() for kind in HeartbeatType)


_HEARTBEAT: Final = b'_heartbeat"'


class _Typed(msgspec.Struct):
    type: str = ""


_decode_type: Final = msgspec.json.Decoder(_Typed).decode


def decode_request(value: bytes | None, *, size_max: int = 1 << 20) -> Request:
    """Decode one record's value.

    Args:
        value: the record's value; `None` is a tombstone.
        size_max: longest accepted value, bytes.

    Raises:
        TickError: it is a tick, which is no request.
        RejectedError: it is not a request; the error has the cause that is counted and words for people.
    """
    if value is not None and is_group_heartbeat(value):
        return decode_group_heartbeat(value, size_max=size_max)
    return decode_event(value, size_max=size_max)


def decode_requests(values: Sequence[bytes], *, size_max: int = 1 << 20) -> list[Request | RejectedError]:
    """Decode many values as `decode_request` does; a value that cannot be decoded gives its error."""
    if not _may_be_heartbeats(values):
        return [*decode_events(values, size_max=size_max)]
    found: list[Request | RejectedError] = []
    start = 0
    for place, value in enumerate(values):
        if is_group_heartbeat(value):
            found += decode_events(values[start:place], size_max=size_max)
            found.append(_heartbeat_or_error(value, size_max))
            start = place + 1
    return [*found, *decode_events(values[start:], size_max=size_max)]


def _heartbeat_or_error(value: bytes, size_max: int) -> GroupHeartbeat | RejectedError:
    try:
        return decode_group_heartbeat(value, size_max=size_max)
    except RejectedError as error:
        return error.without_frames()


def decode_accepted_request(value: bytes) -> Request:
    """Decode a value that `decode_request` has accepted before, without checking it again."""
    return decode_accepted_heartbeat(value) if is_group_heartbeat(value) else decode_accepted(value)


def decode_accepted_requests(values: Sequence[bytes]) -> list[Request]:
    """Decode many values, each as `decode_accepted_request` does."""
    return list(map(decode_accepted_request if _may_be_heartbeats(values) else decode_accepted, values))


def _may_be_heartbeats(values: Sequence[bytes]) -> bool:
    """Return whether any of many values may be a heartbeat with a member epoch, by one search."""
    # No such name has the separator in it, so no match spans two values.
    return _HEARTBEAT in b"\n".join(values)


def is_group_heartbeat(value: bytes) -> bool:
    """Return whether a value is a heartbeat with a member epoch; cheap for others, which seldom have such a name."""
    if _HEARTBEAT not in value or not any(name in value for name in _NAMES):
        return False
    try:
        return _decode_type(value).type in _HEARTBEATS
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def encode_request(request: Request) -> bytes:
    """Encode a request as the JSON that `decode_request` reads, without fields at their default."""
    return encode_event(request) if isinstance(request, Event) else encode_group_heartbeat(request)


def fingerprint_of(request: Request) -> int:
    """Return a hash of a request that may occur often, by which the fast path recognizes it; 0 for any other."""
    if isinstance(request, GroupHeartbeat):
        return digest_of(request) if request.member_epoch > JOIN_EPOCH else 0
    return digest_of(request) if request.type is EventType.HEARTBEAT else 0
