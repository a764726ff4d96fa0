"""The sources from which a group relayed by feeds is read, also while its topic grows.

A feed writes a group's events into the partition that the group's id hashes to, and after them a mark into *every*
partition that it knows. A mark guarantees what the feed wrote before it in its own partition. When the feed learns of
more partitions, it writes the group into a new one, and the marks there hold the group back. So a group has been read
up to a moment when the feed's marks have reached it in *each* partition that may have events of the group: those where
it was seen, and those that its id hashes to, now and before the growth.

If a feed has written nothing to a partition yet, because it does not know the partition or because that part of the log
is unread, the group waits for it. The wait ends with the feed's first mark there. If the feed never writes there, the
wait ends when the partition has been read so far beyond the growth that every producer of the topic knows of it
(`MOVED_MS_MAX`), or so far beyond the feed's last mark elsewhere that the feed is closed. Every record of the partition
moves that time on, ticks included. The group no longer waits for a feed in a partition that the feed has left: one
without a mark of it for long, while there were marks elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.time import LogTime
from heartwheel.engine.time.feeds import FEED_GONE_MS, FIRST_SOURCE
from timing_wheel import TIME_MS_MAX

NO_SOURCE: Final = -1
"""The number in place of a source when a feed has not written into a partition yet; its time is that of an unread
partition."""


def is_closed(source: int, time: LogTime) -> bool:
    """Return whether a source belongs to a feed that has written no mark there for long."""
    if source >= 0:
        return False
    feed = time.feed(source)
    part = time.partitions.get(feed.partition)
    return part is not None and part.watermark_ms - feed.written_ms > FEED_GONE_MS


def awaited(sources: Sequence[int], homes: Collection[int], time: LogTime) -> list[int]:
    """Return the sources from which a group is read, with `NO_SOURCE` where one of its feeds has not written yet.

    Args:
        sources: those where it was seen.
        homes: the partitions that its id hashes to, for every partition count that may still be in use.
        time: of the partitions.

    Returns:
        The sources of feeds that are not closed; if all of them are, those where it was seen.
    """
    opened: list[int] = [source for source in sources if source >= 0]
    closed: list[int] = []
    for feed in dict.fromkeys(time.feed(source).feed for source in sources if source < 0):
        seen = [source for source in sources if source < 0 and time.feed(source).feed == feed]
        here = open_sources(feed, seen, homes, time)
        opened += here
        closed += [] if here else _written_sources(feed, seen, homes, time)
    return opened or closed


def open_sources(feed: str, seen: Sequence[int], partitions: Collection[int], time: LogTime) -> list[int]:
    """Return the sources of a feed to wait for, `NO_SOURCE` where it has not written yet; none if it is closed.

    Args:
        feed: its name.
        seen: the sources to list first.
        partitions: the partitions it may write to.
        time: of the partitions.
    """
    written = _written_sources(feed, seen, partitions, time)
    newest_ms = max((time.feed(source).written_ms for source in written), default=-1)
    unmet = [each for each in partitions if time.known_source(feed, each) is None]
    # Unread records there may belong to the feed, whether it is closed by now or not.
    if any(time.may_be_new_to(each, newest_ms) for each in unmet):
        return [*written, NO_SOURCE]
    return [] if all(is_closed(source, time) for source in written) else written


def _written_sources(feed: str, seen: Sequence[int], partitions: Collection[int], time: LogTime) -> list[int]:
    """Return the sources of a feed where it has written, except those that it has left."""
    numbers = [time.known_source(feed, partition) for partition in partitions]
    written = list(dict.fromkeys([*seen, *(number for number in numbers if number is not None)]))
    newest_ms = max((time.feed(source).written_ms for source in written), default=-1)
    return [
        source
        for source in written
        if newest_ms - time.feed(source).written_ms <= FEED_GONE_MS or not is_closed(source, time)
    ]


def reached_by_all(time: LogTime, decided: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each feed's source how far all open feeds of its partition have come, epoch ms."""
    least: dict[int, int] = {}
    for at, feed in enumerate(time.feeds):
        if not is_closed(FIRST_SOURCE - at, time):
            passed_ms = int(decided[FIRST_SOURCE - at])
            least[feed.partition] = min(passed_ms, least.get(feed.partition, passed_ms))
    return np.array([least.get(feed.partition, TIME_MS_MAX) for feed in time.feeds], np.int64)


def reached_in_all(partitions: tuple[int, ...], time: LogTime, decided: NDArray[np.int64]) -> int:
    """Return how far all feeds have come in all of some partitions, epoch ms."""
    names = dict.fromkeys(feed.feed for feed in time.feeds if feed.partition in partitions)
    sources = [source for name in names for source in open_sources(name, (), partitions, time)]
    return int(decided[sources].min()) if sources else TIME_MS_MAX


class RelayedEvents:
    """What feeds have relayed, and which sources belong to the same feed.

    Args:
        time: of the partitions.
        decided: int64 (sources,), the time up to which each is decided, epoch ms.
    """

    def __init__(self, time: LogTime, decided: NDArray[np.int64]) -> None:
        self._time, self._decided = time, decided

    def is_one_feed(self, source: int, other: int) -> bool:
        """Return whether two sources belong to one feed, which may have two partitions if the topic has grown."""
        if source >= 0 or other >= 0:
            return source == other
        return self._time.feed(source).feed == self._time.feed(other).feed

    def until_ms(self, sources: Sequence[int], group_id: str) -> int:
        """Return the time up to which a group's last feed has relayed everything about it, epoch ms.

        Args:
            sources: the sources of its records; those of the feed of its newest coordinator are last.
            group_id: the group.
        """
        mine = [source for source in sources if self.is_one_feed(source, sources[-1])]
        held = [self._time.feed(source).held.get(group_id, TIME_MS_MAX) for source in mine]
        return min(*held, *(int(self._decided[source]) for source in mine))

    def add_source(self, sources: list[int], source: int) -> None:
        """Add a source of a group's records, in place; a source of a feed that is already listed keeps its place."""
        if source not in sources:
            turns = [at for at, known in enumerate(sources) if self.is_one_feed(known, source)]
            sources.insert(turns[0] if turns else len(sources), source)
