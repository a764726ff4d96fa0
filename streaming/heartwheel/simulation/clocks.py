"""Clocks of hosts, as functions of true time: right or wrong, drifting, stepping.

True time is what nobody in the simulated world can see: milliseconds since the history began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EPOCH_MS: Final = 1_795_239_789_000
"""What a right clock shows at true time 0, epoch ms."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Show a host's time.

    Args:
        ahead_ms: how much it is ahead of true time at the start, ms; negative if it is behind.
        drift_ppm: how much it gains, microseconds a second.
        steps: (true time, by how much it is set forward), both ms.
    """

    ahead_ms: int = 0
    drift_ppm: int = 0
    steps: tuple[tuple[int, int], ...] = ()

    def at(self, true_ms: int) -> int:
        """Tell what it shows, epoch ms."""
        stepped = sum(by for at, by in self.steps if at <= true_ms)
        return EPOCH_MS + true_ms + self.ahead_ms + true_ms * self.drift_ppm // 1_000_000 + stepped

    def lowest_from(self, true_ms: int) -> int:
        """Tell the least that it will show from a moment on, epoch ms."""
        return min([self.at(true_ms), *(self.at(at) for at, _ in self.steps if at > true_ms)])


class DriverClock:
    """Show the driver's time, which keeps to the one assumption about clocks.

    At no time may a record still be appended with a time before the driver's, less the skew allowance. So the clock is
    held at that bound where its own wrongness would take it over; it often runs right along it.

    Args:
        raw: what it would show.
        brokers: the clocks that append times come from.
        allowance_ms: `engine.skew_allowance`, ms.
    """

    def __init__(self, raw: Clock, brokers: Sequence[Clock], allowance_ms: int) -> None:
        self._raw = raw
        self._brokers = brokers
        self._allowance_ms = allowance_ms

    def at(self, true_ms: int) -> int:
        """Tell what it shows, epoch ms."""
        return min(self._raw.at(true_ms), self.bound_at(true_ms))

    def bound_at(self, true_ms: int) -> int:
        """Tell the most that it may show, epoch ms."""
        return min(broker.lowest_from(true_ms) for broker in self._brokers) + self._allowance_ms
