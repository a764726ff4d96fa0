"""Passed on: what a feed that heard of events elsewhere says beside them, and its marks.

A feed such as `heartwheel tap` writes events down later than they happened. So each of them names its feed and the time
at which it happened (`PassedOn`), and now and then the feed writes a *mark* into every partition: all that happened up
to a moment has been passed on. The time of such a group is that of its feed's marks, and no append time is looked at.
Times of feeds that the job is not set to trust (`engine.feeds`) are never believed. Marks are no events, and nothing
that was refused: everybody who reads the topic passes over them, as over ticks.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

FEED_CHARS_MAX: Final = 64
"""Longest name of a feed."""

HELD_MAX: Final = 1_000
"""Most groups that a mark holds back one by one; a feed that has more to hold back stops its mark for all of them."""

HELD_BYTES_MAX: Final = 64 * 1024
"""Most UTF-8 bytes of their ids, likewise: a mark has to fit into a record."""

AHEAD_MS_MAX: Final = 60_000
"""How far a feed's time may be ahead of the append time of its record, ms. What is further ahead is no clock that is
off: time would fly for all of the feed's groups, and could never be taken back."""

_TIME_MS_MAX: Final = 2**53

FEED_FIELD: Final = b'"feed"'
"""What the records of feeds have in them, and hardly any other record."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=FEED_CHARS_MAX)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MS_MAX)]
_Held = Annotated[dict[str, _Time], msgspec.Meta(max_length=HELD_MAX)]


class PassedOn(msgspec.Struct, frozen=True):
    """What an event of a feed says beside the event.

    Args:
        feed: the feed's name.
        at_ms: when the request reached the coordinator, by its clock, epoch ms.
        id: where the feed heard of it; equal for two records of one request.
    """

    feed: Name
    at_ms: _Time
    id: str = ""


class Mark(msgspec.Struct, frozen=True, tag_field="type", tag="mark", omit_defaults=True):
    """Say how far a feed has passed everything on in this partition.

    Args:
        feed: the feed's name.
        passed_ms: every event of an earlier time has been written, epoch ms.
        since_ms: since when the feed has missed nothing, epoch ms. If that is later than its last mark, what happened
            between is not known, and is no silence.
        held: groups of which only what was before a time of their own has been written, epoch ms: members of theirs may
            have sent what the feed is to hear of later.
    """

    feed: Name
    passed_ms: _Time
    since_ms: _Time
    held: _Held = {}


class _Fed(msgspec.Struct):
    feed: object = None


_decode_fed: Final = msgspec.json.Decoder(_Fed).decode
_decode: Final = msgspec.json.Decoder(PassedOn).decode
_decode_mark: Final = msgspec.json.Decoder(Mark).decode
_encode: Final = msgspec.json.Encoder().encode


def is_passed_on(value: bytes) -> bool:
    """Tell whether a record may be one of a feed; cheap for those that are not."""
    return FEED_FIELD in value


def read_feed(value: bytes) -> str:
    """Read the name of the feed that an event says it is of; empty if it names none."""
    feed = _decode_fed(value).feed
    return "" if feed is None else str(feed)


def read_passed_on(value: bytes) -> PassedOn | None:
    """Read what an event of a feed says beside the event.

    Returns:
        It, or `None` if the event names no feed, or says no time.
    """
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode_mark(mark: Mark) -> bytes:
    """Encode a mark as the JSON that `read_mark` reads."""
    return _encode(mark)


def read_mark(value: bytes | None) -> Mark | None:
    """Read a record's value as a mark; `None` if it is none."""
    if value is None or b'"mark"' not in value:
        return None
    try:
        return _decode_mark(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
