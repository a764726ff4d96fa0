"""Records of feeds in the heartbeat topic: events that somebody passes on, and the marks between them.

Read here by a decoder of the audit's own, and kept as *sources* of time: a feed is one for each partition that it
writes to. Its times are its own. An event of it counts at the time that it says, and a mark says that every event of an
earlier time has been written. So a group that a feed passes on is read up to the feed's mark, whatever append times
there are.

The marks of a partition vouch for what the feed wrote there, and for nothing in another one. A group whose id hashes
to another partition since its topic has grown will be told of there. So its time is that of the feed's marks in both,
and until the feed has written into the new one, none.

A source counts from -2 downwards in the order in which they are met, where a partition counts from 0: each list of
places where a group is read from has the one or the other.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from heartwheel.audit.partitions import Outage

UNTRUSTED: Final = "untrusted_feed"
"""The cause that the job rejects an event with whose feed it does not believe."""

TIMELESS: Final = "bad_field"
"""The cause that the job rejects an event with whose feed does not say when it happened."""

AHEAD_MAX_MS: Final = 60_000
"""How far the times of a feed may be ahead of the append time of the record that says them, ms; more is cut off."""

GONE_AFTER_MS: Final = 60_000
"""A group that several feeds have waits for no feed whose last mark is older than that in its partition, ms."""

HEARS_WITHIN_MS: Final = 600_000
"""How long after a topic has grown a feed may take to hear of it, ms: as long as any producer."""

UNMET: Final = -1
"""The number of no source: of a feed that is yet to write to a partition that its groups may be told of in."""

_TIME_MAX_MS: Final = 2**53
_FEED: Final = b'"feed"'

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Moment = Annotated[int, msgspec.Meta(ge=0, le=_TIME_MAX_MS)]
_Held = Annotated[dict[str, _Moment], msgspec.Meta(max_length=1_000)]


class FeedMark(msgspec.Struct, frozen=True):
    """Hold what a mark says.

    Args:
        feed: whose it is.
        passed_ms: every event of an earlier time has been written, epoch ms.
        since_ms: since when the feed has missed nothing, epoch ms.
        held: groups of which only what is older than a time of their own has been written, epoch ms.
    """

    feed: _Name
    passed_ms: _Moment
    since_ms: _Moment
    held: _Held = {}


class Said(msgspec.Struct, frozen=True):
    """Hold what an event of a feed says beside the event: whose it is, and when it happened (epoch ms).

    The time is `None` if it is not one that can be believed.
    """

    feed: str
    at_ms: int | None


class Source(msgspec.Struct):
    """Follow the time of a feed in one partition.

    Args:
        number: of the source, -2 or less.
        feed: the feed's name.
        partition: where its records are.
        passed_ms: every event of an earlier time has been read, epoch ms; -1 before the first mark.
        written_ms: effective append time of the last mark, or of when it was first met, epoch ms.
        behind_ms: how far its groups may have gone without it while it was new, or gone, epoch ms.
        held: groups that it holds back, each at a time of its own, epoch ms.
        due: (moment, group id) of groups to be run once it has come that far, as a heap, epoch ms.
    """

    number: int
    feed: str
    partition: int
    passed_ms: int = -1
    written_ms: int = -1
    behind_ms: int = -1
    held: dict[str, int] = {}
    due: list[tuple[int, str]] = []

    def passed_of(self, group_id: str) -> int:
        """Tell up to when all events of a group have been read, epoch ms."""
        return min(self.passed_ms, self.held.get(group_id, self.passed_ms))

    def read(self, mark: FeedMark, time_ms: int, append_ms: int) -> list[Outage]:
        """Take a mark.

        Args:
            mark: what it says.
            time_ms: its effective append time, epoch ms.
            append_ms: its own, epoch ms: the mark is believed so far beyond it.

        Returns:
            What the feed has missed before it, if anything: for its groups that is as an outage is for others. For one
            that was held back it began where that was.
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
        missed = [Outage(known_ms, since_ms, self.number)]
        return missed + [Outage(at, since_ms, self.number, name) for name, at in held.items() if at < known_ms]


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
_mark: Final = msgspec.json.Decoder(FeedMark).decode
_BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def may_be_fed(value: bytes | None) -> bool:
    """Tell whether a value may be a record of a feed; cheap for those that are not."""
    return value is not None and _FEED in value


def read_feed_mark(value: bytes) -> FeedMark | None:
    """Read a value as a mark; `None` if it is none."""
    try:
        return _mark(value) if _typed(value).type == "mark" else None
    except _BROKEN:
        return None


def read_said(value: bytes) -> Said | None:
    """Read what an event says of its feed; `None` if it names none."""
    feed = _named(value).feed
    if feed is None or not str(feed):
        return None
    try:
        return Said(str(feed), _timed(value).at_ms)
    except _BROKEN:
        return Said(str(feed), None)
