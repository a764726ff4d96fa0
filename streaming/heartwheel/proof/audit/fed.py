"""Records of feeds in the heartbeat topic: the events that a feed relays, and the marks between them.

The audit reads them with its own decoder, and each feed is a *source* of time. A feed has its own times: its event
counts at the time that it carries, and a mark says that every event of an earlier time has been written. So a relayed
group is read up to the feed's mark, whatever the append times are.

All feeds write into one partition of the topic, whatever a group's id hashes to.

Sources have numbers from -2 downwards, in the order in which they first appear; partitions have numbers from 0.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from heartwheel.proof.audit.partitions import AuditedOutage

UNTRUSTED: Final = "untrusted_feed"
"""The cause with which the job rejects an event of a feed that it does not believe."""

MISPLACED: Final = "bad_field"
"""The cause with which the job rejects an event whose feed does not say when it happened, or that is in another
partition."""

PLACE_OF_FEEDS: Final = 0
"""The partition into which all feeds write."""

AHEAD_MAX_MS: Final = 60_000
"""How far a feed's time may be ahead of its record's append time, ms; a later time is cut to this limit."""

SILENT_AFTER_MS: Final = 60_000
"""A group of several feeds stops waiting for a feed whose last mark is older than this, ms."""

FIRST_SOURCE: Final = -2
"""The number of the first source; further sources count downwards."""

_TIME_MAX_MS: Final = 2**53
_FEED: Final = b'"feed"'

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Moment = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_MS)]
_Held = Annotated[dict[str, _Moment], msgspec.Meta(max_length=4_000)]


class AuditedFeedMark(msgspec.Struct, frozen=True):
    """A mark of a feed.

    Args:
        passed_ms: every event of an earlier time has been written, epoch ms.
        since_ms: since when the feed has missed nothing, epoch ms.
        held: for groups that the feed holds back, the time up to which their events have been written, epoch ms.
    """

    feed: _Name
    passed_ms: _Moment
    since_ms: _Moment
    held: _Held = {}


class FeedHeaders(msgspec.Struct, frozen=True):
    """The fields that a feed adds to an event: the feed's name, and when the event happened (epoch ms).

    The time is `None` if it cannot be believed.
    """

    feed: str
    at_ms: int | None


class FeedSource(msgspec.Struct):
    """The clock of a feed.

    Args:
        number: number of the source, -2 or less.
        passed_ms: every event of an earlier time has been read, epoch ms; -1 before the first mark.
        written_ms: effective append time of the last mark, or of the feed's first record before that, epoch ms.
        behind_ms: how far its groups may have advanced without it while it was new, or silent, epoch ms.
        held: groups that it holds back, each with its own time, epoch ms.
        due: heap of (moment, group id): groups to run once its time reaches the moment, epoch ms.
    """

    number: int
    feed: str
    passed_ms: int = -1
    written_ms: int = -1
    behind_ms: int = -1
    held: dict[str, int] = {}
    due: list[tuple[int, str]] = []

    def passed_of(self, group_id: str) -> int:
        """Return up to when all events of a group have been read, epoch ms."""
        return min(self.passed_ms, self.held.get(group_id, self.passed_ms))

    def read(self, mark: AuditedFeedMark, time_ms: int, append_ms: int) -> list[AuditedOutage]:
        """Read a mark.

        Args:
            time_ms: its effective append time, epoch ms.
            append_ms: its append time, epoch ms; it limits how far ahead the mark is believed.

        Returns:
            The spans that the feed missed before the mark, if any. For its groups they are what an outage is for
            others. For a group that was held back, the span begins at its own time.
        """
        self.written_ms = time_ms
        passed_ms = min(mark.passed_ms, append_ms + AHEAD_MAX_MS)
        known_ms, held = self.passed_ms, self.held
        if passed_ms < known_ms:
            return []
        self.passed_ms, self.held = passed_ms, dict(mark.held)
        since_ms = min(mark.since_ms, passed_ms)
        if known_ms < 0 or since_ms <= known_ms:
            return []
        missed = [AuditedOutage(known_ms, since_ms, self.number)]
        return missed + [AuditedOutage(at, since_ms, self.number, name) for name, at in held.items() if at < known_ms]


class _Named(msgspec.Struct):
    feed: object = None


class _Typed(msgspec.Struct):
    type: object = None


class _Timed(msgspec.Struct):
    feed: _Name
    at_ms: _Moment
    id: str = ""


_named: Final = msgspec.json.Decoder(_Named).decode
_typed: Final = msgspec.json.Decoder(_Typed).decode
_timed: Final = msgspec.json.Decoder(_Timed).decode
_mark: Final = msgspec.json.Decoder(AuditedFeedMark).decode
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def may_be_fed(value: bytes | None) -> bool:
    """Return whether a value may be a record of a feed; cheap for those that are not."""
    return value is not None and _FEED in value


def read_feed_mark(value: bytes) -> AuditedFeedMark | None:
    """Return the mark in a value; `None` if it is not a mark."""
    try:
        return _mark(value) if _typed(value).type == "mark" else None
    except _BROKEN:
        return None


def read_feed_headers(value: bytes) -> FeedHeaders | None:
    """Return what a feed added to an event; `None` if the event names no feed."""
    feed = _named(value).feed
    if feed is None or not str(feed):
        return None
    try:
        return FeedHeaders(str(feed), _timed(value).at_ms)
    except _BROKEN:
        return FeedHeaders(str(feed), None)
