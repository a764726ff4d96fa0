"""Limits on login attempts: guessing is slow for any name and from any address."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from heartwheel.base.addresses import network_of

WINDOW_S: Final = 300.0
"""How long a failed login counts, seconds."""

OF_ONE_MAX: Final = 5
"""Most failed logins of one user from one address within `WINDOW_S`."""

OF_ADDRESS_MAX: Final = 30
"""Most failed logins from one address, of IPv6 from one /64; and most wrong tokens."""

OF_USER_MAX: Final = 100
"""Most failed logins of one user from all addresses; high, because it locks out the user, too."""

KEYS_MAX: Final = 10_000
"""Most addresses and users that are remembered: those of the latest attempts."""

Key = tuple[str, ...]


class Attempts:
    """Counts of failed logins.

    Args:
        now_s: a monotonic clock, seconds.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._failed: OrderedDict[Key, deque[float]] = OrderedDict()

    def begin(self, address: str, user: str | None) -> int:
        """Count an attempt as failed until `succeed`, so that parallel attempts do not evade the limits.

        Args:
            user: whose login is tried; `None` for the token, which is counted separately and by address alone, so that
                nobody can lock out those who know it.

        Returns:
            0, or how long to wait, whole seconds; then the attempt may not be made, and does not count.
        """
        now = self._now_s()
        wait_s = max(self._wait_s(key, most, now) for key, most in _keys(address, user))
        if wait_s > 0:
            return math.ceil(wait_s)
        for key, most in _keys(address, user):
            self._failed.setdefault(key, deque(maxlen=most)).append(now)
            self._failed.move_to_end(key)
        while len(self._failed) > KEYS_MAX:
            self._failed.popitem(last=False)
        return 0

    def succeed(self, address: str, user: str | None) -> None:
        """Undo the count of `begin`."""
        for key, _ in _keys(address, user):
            times = self._failed.get(key)
            if times:
                times.pop()
            if not times:
                self._failed.pop(key, None)

    def _wait_s(self, key: Key, most: int, now: float) -> float:
        times = self._failed.get(key)
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        return times[0] + WINDOW_S - now if times and len(times) >= most else 0.0


def _keys(address: str, user: str | None) -> list[tuple[Key, int]]:
    place = network_of(address)
    if user is None:
        return [(("token", place), OF_ADDRESS_MAX)]
    return [(("both", place, user), OF_ONE_MAX), (("address", place), OF_ADDRESS_MAX), (("user", user), OF_USER_MAX)]
