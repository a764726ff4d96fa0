"""From which sources a group is read that feeds pass on, also while its topic grows.

A feed writes what it hears of a group into the partition that the group's id hashes to, and after all of that a mark
into *every* partition that it knows of. A mark vouches for what the feed wrote before it in its own partition: once the
feed has heard of more partitions it tells of the group in a new one, and it is the marks there that hold the group
back. So a group has been read up to a moment once the feed's marks have come so far in *each* partition that the group
may be told of in: those where it was seen, and those that its id hashes to, now and before the growth.

Where a feed has written nothing yet, as it has not heard of the partition, or as that part of the log is unread, it is
waited for. That ends with its first mark there; or, if it never writes there, once the partition has been read for so
long beyond the growth that whoever writes to the topic has heard of it (`MOVED_MS_MAX`), or for so long beyond the
feed's last mark elsewhere that it is gone. Whatever is written there gives it that time, ticks too. A feed is waited
for no longer in a partition that it has left: that it has written no mark into for long, while it wrote them elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.log_time import LogTime
from heartwheel.log_time.feeds import FEED_GONE_MS
from timing_wheel import TIME_MS_MAX

UNMET: Final = -1
"""Stands for the source of a feed that is yet to write into a partition; its time is that of a partition unread."""


def is_gone(source: int, time: LogTime) -> bool:
    """Tell whether a source is one of a feed, which has written no mark there for long."""
    if source >= 0:
        return False
    feed = time.feed(source)
    part = time.partitions.get(feed.partition)
    return part is not None and part.watermark_ms - feed.written_ms > FEED_GONE_MS


def awaited(sources: Sequence[int], homes: Collection[int], time: LogTime) -> list[int]:
    """Return the sources that a group is read from, `UNMET` among them where a feed of it is yet to write.

    Args:
        sources: those that it was seen in.
        homes: the partitions that its id hashes to, by every count of partitions that may still be in use.
        time: of the partitions.

    Returns:
        Those of the feeds that are not gone; only if all of them are, those that it was seen in.
    """
    living: list[int] = [source for source in sources if source >= 0]
    gone: list[int] = []
    for feed in dict.fromkeys(time.feed(source).feed for source in sources if source < 0):
        seen = [source for source in sources if source < 0 and time.feed(source).feed == feed]
        here = living_of(feed, seen, homes, time)
        living += here
        gone += [] if here else _met(feed, seen, homes, time)
    return living or gone


def living_of(feed: str, seen: Sequence[int], partitions: Collection[int], time: LogTime) -> list[int]:
    """Return the sources of a feed that are waited for, `UNMET` where it is yet to write; none if it is gone.

    Args:
        feed: its name.
        seen: the sources that come first.
        partitions: where it may write.
        time: of the partitions.
    """
    met = _met(feed, seen, partitions, time)
    newest_ms = max((time.feed(source).written_ms for source in met), default=-1)
    unmet = [each for each in partitions if time.known_source(feed, each) is None]
    # What is unread there may be of the feed, if it is gone by now or not.
    if any(time.may_be_new_to(each, newest_ms) for each in unmet):
        return [*met, UNMET]
    return [] if all(is_gone(source, time) for source in met) else met


def _met(feed: str, seen: Sequence[int], partitions: Collection[int], time: LogTime) -> list[int]:
    """Return the sources of a feed where it has written, but for those that it has left."""
    numbers = [time.known_source(feed, partition) for partition in partitions]
    met = list(dict.fromkeys([*seen, *(number for number in numbers if number is not None)]))
    newest_ms = max((time.feed(source).written_ms for source in met), default=-1)
    return [
        source
        for source in met
        if newest_ms - time.feed(source).written_ms <= FEED_GONE_MS or not is_gone(source, time)
    ]


class PassedOn:
    """Know what feeds have passed on, and which sources are those of one feed.

    Args:
        time: of the partitions.
        decided: int64 (sources,), up to where each is decided, epoch ms.
    """

    def __init__(self, time: LogTime, decided: NDArray[np.int64]) -> None:
        self._time, self._decided = time, decided

    def is_one_feed(self, source: int, other: int) -> bool:
        """Tell whether two sources are those of one feed, which may be in two partitions of a topic that has grown."""
        if source >= 0 or other >= 0:
            return source == other
        return self._time.feed(source).feed == self._time.feed(other).feed

    def until_ms(self, heard: Sequence[int], group_id: str) -> int:
        """Tell up to when the feed that a group was heard from last has passed on everything of it, epoch ms.

        Args:
            heard: the sources that it was heard from, those of the feed of its newest coordinator at the end.
            group_id: the group's.
        """
        mine = [source for source in heard if self.is_one_feed(source, heard[-1])]
        held = [self._time.feed(source).held.get(group_id, TIME_MS_MAX) for source in mine]
        return min(*held, *(int(self._decided[source]) for source in mine))

    def hear(self, heard: list[int], source: int) -> None:
        """Note a source that a group is heard from, in place; one of a feed that it was heard from keeps its turn."""
        if source not in heard:
            turns = [at for at, known in enumerate(heard) if self.is_one_feed(known, source)]
            heard.insert(turns[0] if turns else len(heard), source)
