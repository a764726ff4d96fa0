"""How often marks are written: as often as verdicts need them, not with every line of a log.

A mark goes into every partition, so marks were most of what a tap wrote: 70 to 115 a second in each, for three
consumers. Verdicts of a tapped group wait for the next mark in its own partition. The next mark of another partition
matters only to groups that may have moved there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

BUSY_MS: Final = 500
"""Time between two marks in a partition with events or held groups, ms: verdicts may be that much later."""

QUIET_MS: Final = 2_000
"""The same for a partition to which nothing was relayed for `_REMEMBERED_S`."""

_REMEMBERED_S: Final = 60.0


class MarkSchedule:
    """The schedule of marks in each partition.

    Args:
        clock_s: a monotonic clock, seconds.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._marks: dict[int, tuple[int, float]] = {}
        self._events_s: dict[int, float] = {}

    def note_events(self, partitions: Iterable[int]) -> None:
        """Note to which partitions events were relayed."""
        self._events_s.update(dict.fromkeys(partitions, self._clock_s()))

    def note(self, passed_ms: int, partitions: Iterable[int]) -> None:
        """Note that marks were written.

        Args:
            passed_ms: what they say, epoch ms.
            partitions: where.
        """
        self._marks.update(dict.fromkeys(partitions, (passed_ms, self._clock_s())))

    def due(self, passed_ms: int, partitions: int, *, busy: Collection[int], at_once: bool = False) -> list[int]:
        """Return the partitions in which a mark is due.

        Args:
            passed_ms: the mark's time, epoch ms.
            partitions: how many there are.
            busy: those with held groups.
            at_once: whether a mark is due wherever it would be newer than the last.
        """
        now_s = self._clock_s()
        found = []
        for number in range(partitions):
            before_ms, written_s = self._marks.get(number, (-1, 0.0))
            events_s = self._events_s.get(number)
            is_busy = number in busy or (events_s is not None and now_s - events_s < _REMEMBERED_S)
            length_ms = 0 if at_once or before_ms < 0 else BUSY_MS if is_busy else QUIET_MS
            # By the log's time while a backlog is read, by the clock while the log has no new lines.
            is_time = passed_ms - before_ms >= length_ms or (now_s - written_s) * 1000 >= length_ms
            if passed_ms > before_ms and is_time:
                found.append(number)
        return found
