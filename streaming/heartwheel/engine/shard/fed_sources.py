"""The feeds from which a relayed group is read, and how far they have come.

A feed that has written no mark for long is *closed*: its broker no longer coordinates its groups, and may never come
back. A group waits for the open ones of the feeds that relayed it or, if all of them are closed, for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.time import LogTime
from heartwheel.engine.time.feeds import FEED_GONE_MS, FIRST_SOURCE
from timing_wheel import TIME_MS_MAX


def is_closed(source: int, time: LogTime) -> bool:
    """Return whether a source belongs to a feed that has written no mark for long."""
    return source < 0 and time.feeds_written_ms() - time.feed(source).written_ms > FEED_GONE_MS


def awaited(sources: Sequence[int], time: LogTime) -> list[int]:
    """Return those of a group's sources that are not closed; if all of them are, all."""
    return [source for source in sources if not is_closed(source, time)] or list(sources)


def reached_by_all(time: LogTime, decided: NDArray[np.int64]) -> int:
    """Return how far all open feeds have come, epoch ms."""
    sources = [FIRST_SOURCE - at for at in range(len(time.feeds))]
    return min((int(decided[each]) for each in sources if not is_closed(each, time)), default=TIME_MS_MAX)


class RelayedEvents:
    """What feeds have relayed.

    Args:
        time: of the partitions.
        decided: int64 (sources,), the time up to which each is decided, epoch ms.
    """

    def __init__(self, time: LogTime, decided: NDArray[np.int64]) -> None:
        self._time, self._decided = time, decided

    def until_ms(self, source: int, group_id: str) -> int:
        """Return the time up to which the feed of a source has relayed everything about a group, epoch ms."""
        return min(int(self._decided[source]), self._time.feed(source).held.get(group_id, TIME_MS_MAX))
