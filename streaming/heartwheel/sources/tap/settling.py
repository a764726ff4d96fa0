"""Settling: how far the watermark stays behind the newest line, so that lines that come late are not missed.

A line is written when the answer was sent, and a busy broker answers late: so a request that arrived shortly before the
newest line may not be in the log yet. The delay is measured on requests that are never parked.
"""

from __future__ import annotations

from collections import deque
from typing import Final

SETTLE_MS: Final = 200
"""The least delay, ms: on a quiet broker a line was seen 25 ms behind those of requests that arrived after it."""

SETTLE_MS_MAX: Final = 5_000
"""The greatest delay, ms; verdicts are that late while a broker takes seconds to answer a heartbeat."""

_REMEMBERED_MS: Final = 10_000
_TIMES: Final = 2


class Settling:
    """The delay of the lines of the last seconds."""

    def __init__(self) -> None:
        self._slow: deque[tuple[int, int]] = deque()

    def note(self, logged_ms: int, took_ms: int) -> None:
        """Note a request of a kind that is answered at once.

        Args:
            logged_ms: when its line was written, epoch ms.
            took_ms: how long after its arrival that was, ms.
        """
        while self._slow and (self._slow[0][0] < logged_ms - _REMEMBERED_MS):
            self._slow.popleft()
        while self._slow and self._slow[-1][1] <= took_ms:
            self._slow.pop()
        self._slow.append((logged_ms, took_ms))

    @property
    def settle_ms(self) -> int:
        """The delay behind the newest line after which no further line is expected, ms."""
        slowest = self._slow[0][1] if self._slow else 0
        return max(SETTLE_MS, min(_TIMES * slowest, SETTLE_MS_MAX))
