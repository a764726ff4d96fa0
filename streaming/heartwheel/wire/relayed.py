"""Relayed events: the fields that a feed adds to the events that it relays, and its marks.

A feed such as `heartwheel tap` writes events later than they happened. So each event names its feed and the time at
which it happened (`FeedFields`), and from time to time the feed writes a *mark*: everything that happened up to a
moment has been relayed. The clock of such a group follows its feed's marks instead of append times. All feeds write
into one partition, so the log orders their records among each other.

The job never believes the times of feeds that it is not set to trust (`engine.feeds`). Marks are no events and no
rejects: every reader of the topic skips them, as it skips ticks.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

FEED_CHARS_MAX: Final = 64
"""Longest name of a feed."""

FEEDS_PARTITION: Final = 0
"""The partition of the heartbeat topic that all feeds write to. It exists in every topic, however many are added."""

HELD_MAX: Final = 4_000
"""Most groups that a mark holds back individually; a feed with more of them stops its mark for all groups."""

HELD_BYTES_MAX: Final = 128 * 1024
"""Most UTF-8 bytes of their ids, likewise: a mark must fit into a record of 1 MiB, and JSON writes up to six bytes for
one."""

AHEAD_MS_MAX: Final = 60_000
"""How far a feed's time may be ahead of the append time of its record, ms. A larger difference is not a wrong clock: it
would advance the time of all of the feed's groups far ahead, and time never goes back."""

_TIME_MS_MAX: Final = 2**53

FEED_FIELD: Final = b'"feed"'
"""The bytes that all records of feeds have, and hardly any other record."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=FEED_CHARS_MAX)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MS_MAX)]
_Held = Annotated[dict[str, _Time], msgspec.Meta(max_length=HELD_MAX)]


class FeedFields(msgspec.Struct, frozen=True):
    """The fields that a feed adds to an event.

    Args:
        feed: the feed's name.
        at_ms: when the request reached the coordinator, by its clock, epoch ms.
        id: the place in the feed's source; equal for two records of one request.
    """

    feed: Name
    at_ms: _Time
    id: str = ""


class FeedWatermark(msgspec.Struct, frozen=True, tag_field="type", tag="mark", omit_defaults=True):
    """A feed's mark: up to when it has relayed everything.

    Args:
        feed: the feed's name.
        passed_ms: every event of an earlier time has been written, epoch ms.
        since_ms: since when the feed has missed nothing, epoch ms. If that is later than its last mark, the events in
            between are unknown, which does not count as silence.
        held: for groups that the feed holds back, the time up to which their events have been written, epoch ms; the
            feed may receive later requests of their members afterwards.
    """

    feed: Name
    passed_ms: _Time
    since_ms: _Time
    held: _Held = {}


class _Fed(msgspec.Struct):
    feed: object = None


_decode_fed: Final = msgspec.json.Decoder(_Fed).decode
_decode: Final = msgspec.json.Decoder(FeedFields).decode
_decode_mark: Final = msgspec.json.Decoder(FeedWatermark).decode
_encode: Final = msgspec.json.Encoder().encode


def may_be_relayed(value: bytes) -> bool:
    """Return whether a record may be one of a feed; cheap for those that are not."""
    return FEED_FIELD in value


def read_feed(value: bytes) -> str:
    """Return the name of the feed in an event; empty if it names none."""
    feed = _decode_fed(value).feed
    return "" if feed is None else str(feed)


def read_feed_fields(value: bytes) -> FeedFields | None:
    """Return the fields that a feed added to an event.

    Returns:
        The fields, or `None` if the event names no feed or no time.
    """
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode_mark(mark: FeedWatermark) -> bytes:
    """Encode a mark as the JSON that `read_mark` reads."""
    return _encode(mark)


def read_mark(value: bytes | None) -> FeedWatermark | None:
    """Return the mark in a record's value; `None` if it is not a mark."""
    if value is None or b'"mark"' not in value:
        return None
    try:
        return _decode_mark(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
