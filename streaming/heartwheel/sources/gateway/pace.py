"""Rate limit of each client: a token bucket for each of the clients seen last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from heartwheel.base.addresses import network_of

_CLIENTS_MAX: Final = 10_000


class ClientRate:
    """Token buckets of clients.

    Args:
        per_second: records that one client may send a second on average; also the size of its bucket.
    """

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, records: int, now_s: float) -> float:
        """Take records off a client's bucket.

        A request for more than a bucket holds takes from a full bucket, and leaves it in debt.

        Args:
            client: its address; IPv6 clients share a bucket per /64.
            now_s: the time, seconds of a monotonic clock.

        Returns:
            0 if it may send them; otherwise the seconds until it may, and nothing was taken.
        """
        client = network_of(client)
        left, since_s = self._buckets.get(client, (float(self._per_second), now_s))
        left = min(float(self._per_second), left + (now_s - since_s) * self._per_second)
        short = min(records, self._per_second) - left
        if short <= 0:
            left -= records
        self._buckets[client] = (left, now_s)
        self._buckets.move_to_end(client)
        if len(self._buckets) > _CLIENTS_MAX:
            self._buckets.popitem(last=False)
        return max(0.0, short / self._per_second)
