"""Feeds: the time of groups whose events are passed on by somebody who heard of them elsewhere.

For such a group a feed's marks are what the watermark of a partition is for others: all that happened before a mark has
been read. So a feed is one more *source* of time beside the partitions, one for each partition that it writes to, and
its times are its own: nothing of it is compared with an append time. A feed that lags or dies stops the time of its
groups; groups of other feeds wait for it only once none of their members is heard of any more, as they may have moved.

What a feed has missed is no silence: between its last mark and the `since_ms` of its next one nothing is known, and the
sessions of its groups start anew, as after an outage.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.engine.time.outage import Outage, OutageKind
from heartwheel.wire.passed_on import AHEAD_MS_MAX, FeedWatermark

FEED_GONE_MS: Final = 60_000
"""How long, by append times, after the last mark of a feed a group that another feed has as well waits for it no more,
ms: its broker coordinates the group no longer, and may be gone for good."""

FIRST_SOURCE: Final = -2
"""The number of the first feed's source; the next ones follow downwards. Partitions count from 0, and -1 is none."""


class FeedMark(msgspec.Struct, array_like=True):
    """Marks of a feed that follow each other without a gap, as one.

    Args:
        feed: the feed's name.
        passed_ms: of the last of them, epoch ms.
        since_ms: of the first of them, epoch ms.
        written_ms: effective append time of the last of them, epoch ms.
        held: of the last of them.
    """

    feed: str
    passed_ms: int
    since_ms: int
    written_ms: int
    held: dict[str, int] = {}


class FeedTime(msgspec.Struct, array_like=True):
    """What is known of the time of a feed in one partition.

    Args:
        feed: the feed's name.
        partition: of the heartbeat topic.
        passed_ms: all that happened before has been read, epoch ms; -1 before the first mark.
        written_ms: effective append time of its last mark, or of when it was first met, epoch ms.
        held: groups that it holds back at a time of their own, epoch ms.
    """

    feed: str
    partition: int
    passed_ms: int = -1
    written_ms: int = -1
    held: dict[str, int] = {}

    def read(self, mark: FeedMark, source: int) -> list[Outage]:
        """Take in marks; return the gap before them, if something was missed there.

        Of a group that was held back less is known than of the others, so its gap begins earlier.
        """
        self.written_ms = mark.written_ms
        if mark.passed_ms < self.passed_ms:
            return []  # a feed that goes back over what it has passed on says nothing new
        before_ms, held, self.passed_ms, self.held = self.passed_ms, self.held, mark.passed_ms, mark.held
        if not 0 <= before_ms < mark.since_ms:
            return []
        begins = [("", before_ms), *((group_id, held_ms) for group_id, held_ms in held.items() if held_ms < before_ms)]
        return [
            Outage(source, begin_ms, mark.since_ms, OutageKind.NOT_PASSED_ON, group_id) for group_id, begin_ms in begins
        ]


def note_mark(marks: list[FeedMark], mark: FeedWatermark, at_ms: int, append_ms: int) -> None:
    """Add a mark to those that were read before it; one that follows the last without a gap continues it.

    Args:
        marks: in the order of the log.
        mark: the next one.
        at_ms: its effective append time, epoch ms.
        append_ms: its own, beyond which it is believed by so much; the other may depend on where batches are cut.
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
