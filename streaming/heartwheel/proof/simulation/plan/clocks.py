"""Clocks of hosts as functions of true time: they may be wrong, drift and step.

True time is milliseconds since the history began. Nothing in the simulated world can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EPOCH_MS: Final = 1_795_239_789_000
"""The time of a correct clock at true time 0, epoch ms."""


@dataclass(frozen=True, kw_only=True)
class HostClock:
    """A host's clock.

    Args:
        ahead_ms: how much it is ahead of true time at the start, ms; negative if it is behind.
        drift_ppm: how much it gains, microseconds per second.
        steps: (true time, how far it is set forward), both ms.
    """

    ahead_ms: int = 0
    drift_ppm: int = 0
    steps: tuple[tuple[int, int], ...] = ()

    def at(self, true_ms: int) -> int:
        """Return the time that it shows, epoch ms."""
        stepped = sum(by for at, by in self.steps if at <= true_ms)
        return EPOCH_MS + true_ms + self.ahead_ms + true_ms * self.drift_ppm // 1_000_000 + stepped
