"""Log lines at a limited rate, for what anybody can make happen as often as they like."""

from __future__ import annotations

import logging
import time


class RareLog:
    """A warning that is logged at most once in an interval, with how often it was due since the last line.

    Args:
        interval_s: shortest time between two lines, seconds.
    """

    def __init__(self, logger: logging.Logger, interval_s: float) -> None:
        self._logger, self._interval_s = logger, interval_s
        self._count, self._logged_s = 0, float("-inf")

    def warning(self, message: str, *args: object) -> None:
        """Count one occurrence, and log it unless the last line is too recent.

        Args:
            message: with a place for each of `args`, and one more for the count at its end.
            args: what stands in the other places.
        """
        self._count += 1
        now_s = time.monotonic()
        if now_s - self._logged_s >= self._interval_s:
            self._logger.warning(message, *args, self._count)
            self._count, self._logged_s = 0, now_s
