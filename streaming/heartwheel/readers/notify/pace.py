"""The pace of posting: a token bucket for all messages, and a pause that grows while the receiver fails."""

from __future__ import annotations

import random
from typing import Final

PAUSE_MS_FIRST: Final = 1_000
"""Longest pause after a first failure, ms; it doubles with each one that follows."""

PAUSE_MS_MAX: Final = 300_000
"""Longest pause that grows by itself, ms."""

ASKED_PAUSE_MS_MAX: Final = 3_600_000
"""Longest pause that a receiver may ask for by `Retry-After`, ms."""


class TokenBucket:
    """A token bucket: `burst` messages at once and `per_minute` on average.

    Args:
        per_minute: how many tokens come in a minute.
        burst: how many there are at most, and at the start.
    """

    def __init__(self, *, per_minute: int, burst: int) -> None:
        self._per_minute = per_minute
        self._burst = burst
        # In 60,000ths of a token, because sums of integers have no rounding error.
        self._balance = burst * 60_000
        self._filled_ms: int | None = None

    def tokens(self, now_ms: int) -> int:
        """Return how many messages may be sent now; a clock that went back fills nothing."""
        past_ms = 0 if self._filled_ms is None else max(0, now_ms - self._filled_ms)
        self._balance = min(self._burst * 60_000, self._balance + past_ms * self._per_minute)
        self._filled_ms = now_ms
        return self._balance // 60_000

    def take(self, now_ms: int) -> bool:
        """Take a token; return whether there was one."""
        if not self.tokens(now_ms):
            return False
        self._balance -= 60_000
        return True


class RetryDelay:
    """When to try again after failures: exponential, with jitter, and never before the receiver asks for it.

    Args:
        rng: draws the jitter.
    """

    def __init__(self, rng: random.Random) -> None:
        self.failures = 0
        self.until_ms = 0
        self._rng = rng

    def fail(self, now_ms: int, *, asked_ms: int = 0) -> int:
        """Note a failure.

        Args:
            asked_ms: how long the receiver asked to wait, ms.

        Returns:
            When to try again, epoch ms.
        """
        self.failures += 1
        longest_ms = min(PAUSE_MS_MAX, PAUSE_MS_FIRST << min(self.failures - 1, 20))
        # From half of it on, so that many notifiers of one receiver do not return at the same moment.
        drawn_ms = self._rng.randint(longest_ms // 2, longest_ms)
        self.until_ms = now_ms + max(drawn_ms, min(asked_ms, ASKED_PAUSE_MS_MAX))
        return self.until_ms

    def succeed(self) -> None:
        """Note that the receiver answers."""
        self.failures = 0
        self.until_ms = 0
