"""How often marks are written: as often as verdicts need them, not with every line of a log.

With every line, marks were most of what a tap wrote: 70 to 115 a second for three consumers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

BUSY_MS: Final = 500
"""Time between two marks while there are events or held groups, ms: verdicts may be that much later."""

QUIET_MS: Final = 2_000
"""The same while nothing was relayed for `_REMEMBERED_S`."""

_REMEMBERED_S: Final = 60.0


class MarkSchedule:
    """The schedule of a tap's marks.

    Args:
        clock_s: a monotonic clock, seconds.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._passed_ms, self._written_s = -1, 0.0
        self._events_s = -_REMEMBERED_S

    def note_events(self) -> None:
        """Note that events were relayed."""
        self._events_s = self._clock_s()

    def note(self, passed_ms: int) -> None:
        """Note that a mark was written that says this, epoch ms."""
        self._passed_ms, self._written_s = passed_ms, self._clock_s()

    def is_due(self, passed_ms: int, *, busy: bool, at_once: bool = False) -> bool:
        """Return whether a mark is due.

        Args:
            passed_ms: the mark's time, epoch ms.
            busy: whether groups are held.
            at_once: whether it is due if it would be newer than the last.
        """
        now_s = self._clock_s()
        is_busy = busy or now_s - self._events_s < _REMEMBERED_S
        length_ms = 0 if at_once or self._passed_ms < 0 else BUSY_MS if is_busy else QUIET_MS
        # By the log's time while a backlog is read, by the clock while the log has no new lines.
        is_time = passed_ms - self._passed_ms >= length_ms or (now_s - self._written_s) * 1000 >= length_ms
        return passed_ms > self._passed_ms and is_time
