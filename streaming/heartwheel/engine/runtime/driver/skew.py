"""How far the clocks of the brokers are apart, by the append times that come back with the ticks.

Ticks of one round are sent together, and each broker stamps those of its partitions on arrival. A stamp is later than
the sending by the difference of the clocks and by the way there, which is never negative and nearly always short. So of
the newest ticks of a partition the one that was stamped soonest after its sending shows the broker's clock best.
"""

from __future__ import annotations

from collections import deque
from typing import Final

ROUNDS: Final = 25
"""Ticks of a partition that are looked at: five seconds of them, by default."""


class BrokerClocks:
    """The append times of the newest ticks of each partition."""

    def __init__(self) -> None:
        self._ahead: dict[int, deque[int]] = {}

    def note(self, partition: int, sent_ms: int, stamped_ms: int) -> None:
        """Add a tick.

        Args:
            sent_ms: when it was sent, by the ticker's monotonic clock, ms.
            stamped_ms: its append time, epoch ms.
        """
        self._ahead.setdefault(partition, deque(maxlen=ROUNDS)).append(stamped_ms - sent_ms)

    def forget(self, partition: int) -> None:
        """Remove a partition to which no ticks come: its leader's clock may be another one afterwards."""
        self._ahead.pop(partition, None)

    def skew_ms(self) -> int | None:
        """Return how far the furthest clocks are apart, ms; `None` of fewer than two partitions."""
        soonest = [min(ahead) for ahead in list(self._ahead.values())]
        return max(soonest) - min(soonest) if len(soonest) > 1 else None
