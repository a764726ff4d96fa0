"""The sources of feeds: which of them a group that feeds pass on is read from, in which partitions.

A feed is waited for in each partition that the group may be in: where it has written, and where it is yet to write. Not
where it has long ceased to write while it wrote elsewhere; and nowhere once it has ceased to write everywhere.
"""

from __future__ import annotations

from typing import Final

from heartwheel.audit.fed import GONE_AFTER_MS, HEARS_WITHIN_MS, UNMET, Source
from heartwheel.audit.state import State

FIRST_SOURCE: Final = -2
"""The number of the source that is met first; others count downwards."""


class FedSources:
    """Know the sources of feeds.

    Args:
        state: what the audit knows; changed in place.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def source(self, number: int) -> Source:
        """Find a source by its number."""
        return self._state.sources[FIRST_SOURCE - number]

    def is_same(self, one: int, other: int) -> bool:
        """Tell whether two partitions, or sources, are one, or those of one feed in two partitions."""
        return one == other or (one < 0 and other < 0 and self.source(one).feed == self.source(other).feed)

    def names(self, numbers: list[int]) -> list[str]:
        """Name the feeds of some sources, each once."""
        return list(dict.fromkeys(self.source(number).feed for number in numbers if number < 0))

    def is_gone(self, number: int) -> bool:
        """Tell whether a source is that of a feed which has written no mark for long."""
        if number >= UNMET:
            return False
        source = self.source(number)
        part = self._state.partitions.get(source.partition)
        return part is not None and part.watermark_ms - source.written_ms > GONE_AFTER_MS

    def of_feed(self, feed: str, places: set[int]) -> list[int]:
        """List the sources of a feed in some partitions; none if the feed is gone, `UNMET` where it is yet to write."""
        there = self.written_by(feed, places)
        newest_ms = max(source.written_ms for source in there)
        numbers = [source.number for source in there]
        last_ms = min(self._state.grown_ms + HEARS_WITHIN_MS, newest_ms + GONE_AFTER_MS)
        met = {source.partition for source in self._state.sources if source.feed == feed}
        if any(self._watermark_ms(place) <= last_ms for place in places - met):
            return [*numbers, UNMET]  # what is unread there may be of the feed, if it is gone by now or not
        return [] if all(map(self.is_gone, numbers)) else numbers

    def written_by(self, feed: str, places: set[int]) -> list[Source]:
        """List where a feed has written; not where it has long ceased to write while it wrote elsewhere."""
        found = [source for source in self._state.sources if source.feed == feed and source.partition in places]
        newest_ms = max(source.written_ms for source in found)
        return [
            source
            for source in found
            if newest_ms - source.written_ms <= GONE_AFTER_MS or not self.is_gone(source.number)
        ]

    def _watermark_ms(self, partition: int) -> int:
        part = self._state.partitions.get(partition)
        return -1 if part is None else part.watermark_ms

    def note_growth(self, named: int, least_ms: int) -> None:
        """Note how many partitions a tick names: where they were fewer, feeds may have told of a group elsewhere.

        Args:
            named: how many.
            least_ms: up to when everything is known of every partition, epoch ms.
        """
        state = self._state
        if named > state.named:
            state.former, state.named = [*state.former, state.named] if state.named else [], named
        elif state.former and least_ms > state.grown_ms + HEARS_WITHIN_MS:
            state.former = []
