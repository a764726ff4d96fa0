"""The sources of feeds, and from which of them, in which partitions, a relayed group is read.

The audit waits for a feed in each partition that the group may be in, even where the feed has not written yet. There
are two exceptions. It does not wait in a partition where the feed stopped long ago while it wrote elsewhere. It does
not wait anywhere once the feed has stopped everywhere.
"""

from __future__ import annotations

from typing import Final

from heartwheel.proof.audit.fed import GROWTH_KNOWN_WITHIN_MS, SILENT_AFTER_MS, UNMET, FeedSource
from heartwheel.proof.audit.state import AuditState

FIRST_SOURCE: Final = -2
"""The number of the first source; further sources count downwards."""


class FedSources:
    """The sources of all feeds.

    Args:
        state: the audit's state; changed in place.
    """

    def __init__(self, state: AuditState) -> None:
        self._state = state

    def source(self, number: int) -> FeedSource:
        """Return a source by its number."""
        return self._state.sources[FIRST_SOURCE - number]

    def is_same(self, one: int, other: int) -> bool:
        """Return whether two numbers are the same partition or source, or two sources of one feed."""
        return one == other or (one < 0 and other < 0 and self.source(one).feed == self.source(other).feed)

    def names(self, numbers: list[int]) -> list[str]:
        """Return the names of the feeds of some sources, each once."""
        return list(dict.fromkeys(self.source(number).feed for number in numbers if number < 0))

    def is_silent(self, number: int) -> bool:
        """Return whether a source's last mark is older than `SILENT_AFTER_MS`."""
        if number >= UNMET:
            return False
        source = self.source(number)
        part = self._state.partitions.get(source.partition)
        return part is not None and part.watermark_ms - source.written_ms > SILENT_AFTER_MS

    def of_feed(self, feed: str, places: set[int]) -> list[int]:
        """Return a feed's sources in some partitions, with `UNMET` if it may yet write to one; none if it is silent."""
        there = self.written_by(feed, places)
        newest_ms = max(source.written_ms for source in there)
        numbers = [source.number for source in there]
        last_ms = min(self._state.grown_ms + GROWTH_KNOWN_WITHIN_MS, newest_ms + SILENT_AFTER_MS)
        met = {source.partition for source in self._state.sources if source.feed == feed}
        if any(self._watermark_ms(place) <= last_ms for place in places - met):
            return [*numbers, UNMET]  # an unread record there may be the feed's, even if it is silent by now
        return [] if all(map(self.is_silent, numbers)) else numbers

    def written_by(self, feed: str, places: set[int]) -> list[FeedSource]:
        """Return a feed's sources in some partitions, except where it stopped long ago while it wrote elsewhere."""
        found = [source for source in self._state.sources if source.feed == feed and source.partition in places]
        newest_ms = max(source.written_ms for source in found)
        return [
            source
            for source in found
            if newest_ms - source.written_ms <= SILENT_AFTER_MS or not self.is_silent(source.number)
        ]

    def _watermark_ms(self, partition: int) -> int:
        part = self._state.partitions.get(partition)
        return -1 if part is None else part.watermark_ms

    def note_growth(self, named: int, least_ms: int) -> None:
        """Record how many partitions a tick names; while there were fewer, feeds may have written a group elsewhere.

        Args:
            named: the number of partitions.
            least_ms: up to when every partition is decided, epoch ms.
        """
        state = self._state
        if named > state.named:
            state.former, state.named = [*state.former, state.named] if state.named else [], named
        elif state.former and least_ms > state.grown_ms + GROWTH_KNOWN_WITHIN_MS:
            state.former = []
