"""The machine's wall clock, watched for steps back: Spark waits for the next trigger by it."""

from __future__ import annotations

import time
from collections.abc import Callable


class WallClock:
    """Notice when the wall clock is set back.

    Spark plans the next trigger as a time of day and waits for that (`ProcessingTimeExecutor`): set back by a minute,
    no batch begins for a minute.

    Args:
        wall_s: reads the wall clock, seconds.
        monotonic_s: reads a clock that nobody sets, seconds.
    """

    def __init__(
        self, *, wall_s: Callable[[], float] = time.time, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_s, self._monotonic_s = wall_s, monotonic_s
        self._ahead_s = self._now()

    def set_back_s(self) -> float:
        """Return how far it was set back since the last call, seconds; 0 if it was not."""
        before, self._ahead_s = self._ahead_s, self._now()
        return max(0.0, before - self._ahead_s)

    def _now(self) -> float:
        return self._wall_s() - self._monotonic_s()
