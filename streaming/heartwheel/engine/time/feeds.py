"""Feeds: the time of groups whose events a feed relays from another broker.

For such a group a feed's marks take the place of a partition's watermark: everything that happened before a mark has
been read. So a feed is another *source* of time beside the partitions. Its times are on its broker's clock and are
never compared with append times. A feed that lags or dies stops the time of its groups. Groups of other feeds keep
running. The exception is a group that has gone quiet: it may have moved to this feed's broker, so it waits.

All feeds write into one partition of the heartbeat topic (`FEEDS_PARTITION`). So the log orders them among each other,
a feed is known by the time its events matter, and a topic that grows changes nothing for them.

What a feed has missed does not count as silence: nothing is known of the time between its last mark and the `since_ms`
of its next one, so the sessions of its groups restart, as after an outage.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.engine.time.outage import Outage, OutageKind
from heartwheel.wire.relayed import AHEAD_MS_MAX, FeedWatermark

FEED_CLOSED_MS: Final = 60_000
"""How long a group that another feed relays as well waits for a feed without marks, ms of append time. After that the
feed is *closed*: its broker no longer coordinates its groups, and may never come back."""

FIRST_SOURCE: Final = -2
"""The number of the first feed's source; further ones count down. Partitions count up from 0, and -1 means none."""


class FeedMark(msgspec.Struct, array_like=True):
    """Consecutive marks of a feed without a gap, merged into one.

    Args:
        passed_ms: `passed_ms` of the last mark, epoch ms.
        since_ms: `since_ms` of the first mark, epoch ms.
        written_ms: effective append time of the last mark, epoch ms.
        held: `held` of the last mark.
    """

    feed: str
    passed_ms: int
    since_ms: int
    written_ms: int
    held: dict[str, int] = {}


class FeedTime(msgspec.Struct, array_like=True):
    """The time of a feed.

    Args:
        passed_ms: everything that happened before it has been read, epoch ms; -1 before the first mark.
        written_ms: effective append time of the last mark, or of the feed's first record before that, epoch ms.
        held: the groups that the feed holds back, each with the time at which it is held, epoch ms.
    """

    feed: str
    passed_ms: int = -1
    written_ms: int = -1
    held: dict[str, int] = {}

    def read(self, mark: FeedMark, source: int) -> list[Outage]:
        """Add marks; return the gap before them, if the feed has missed something there.

        Less was relayed of a group that was held back than of the others, so its gap begins earlier.
        """
        self.written_ms = mark.written_ms
        if mark.passed_ms < self.passed_ms:
            return []  # a feed that repeats what it has relayed before says nothing new
        before_ms, held, self.passed_ms, self.held = self.passed_ms, self.held, mark.passed_ms, mark.held
        if not 0 <= before_ms < mark.since_ms:
            return []
        begins = [("", before_ms), *((group_id, held_ms) for group_id, held_ms in held.items() if held_ms < before_ms)]
        return [
            Outage(source, begin_ms, mark.since_ms, OutageKind.NOT_RELAYED, group_id) for group_id, begin_ms in begins
        ]


def note_mark(marks: list[FeedMark], mark: FeedWatermark, at_ms: int, append_ms: int) -> None:
    """Append a mark to a list, or merge it into the feed's last one if there is no gap between them.

    Args:
        marks: the marks read before it, in the order of the log; changed in place.
        at_ms: its effective append time, epoch ms.
        append_ms: its own append time, epoch ms. The mark is believed up to `AHEAD_MS_MAX` after it; the effective time
            would not do, because it may depend on where batches are cut.
    """
    passed_ms = min(mark.passed_ms, append_ms + AHEAD_MS_MAX)
    since_ms = min(mark.since_ms, passed_ms)
    last = next((each for each in reversed(marks) if each.feed == mark.feed), None)
    if last is None or since_ms > last.passed_ms:
        marks.append(FeedMark(mark.feed, passed_ms, since_ms, at_ms, dict(mark.held)))
        return
    last.written_ms = at_ms
    if passed_ms >= last.passed_ms:
        last.passed_ms, last.held = passed_ms, dict(mark.held)
