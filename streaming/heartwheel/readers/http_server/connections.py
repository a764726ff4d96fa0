"""Which connections may stay: caps, a reserve for probes, one budget for bodies, and deadlines."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator
from typing import Final

from heartwheel.base.addresses import network_of
from heartwheel.readers.http_server.connection import STALLED_S, Connection, Limits, Pool, Stage

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are answered on the reserve, too."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Connections:
    """The open connections: which are admitted, and which is closed to make room.

    When the caps are reached, a newcomer replaces a connection that has sent no whole request yet or waits between two,
    the one with the oldest progress first. So clients that hold connections without using them keep nobody out. When
    all connections are in use, newcomers get the reserve.

    Args:
        limits: the caps and deadlines.
        exempt: addresses of proxies, to which the cap per address does not apply.
    """

    def __init__(self, limits: Limits, exempt: Collection[Network] = ()) -> None:
        self.limits, self._exempt = limits, tuple(exempt)
        self._everybody, self._ordinary, self._spare = Pool(), Pool(), Pool()
        self._places: dict[str, Pool] = {}
        self._body_bytes = 0

    def __len__(self) -> int:
        return len(self._everybody)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._everybody.members))

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that wait to be sent, over all connections."""
        total = 0
        for each in list(self._everybody.sending):
            unsent = each.unsent_bytes()
            total += unsent
            if not unsent and each.stage is not Stage.ANSWERING:
                del self._everybody.sending[each]
        return total

    @property
    def body_bytes(self) -> int:
        """The number of bytes in memory of requests that are not answered yet, over all connections."""
        return self._body_bytes

    def admit(self, address: str, end: Callable[[], None], now: float) -> Connection | None:
        """Admit a new connection, or refuse it with `None`.

        Args:
            address: of the other end.
            end: breaks the connection at once.
            now: the time, seconds of a monotonic clock.
        """
        limits, place = self.limits, network_of(address)
        ours = self._places.get(place)
        reserved = False
        if ours is not None and len(ours) >= limits.per_address and not self._is_exempt(address):
            reserved = not self._evict(ours)
        elif len(self._ordinary) >= limits.connections:
            reserved = not self._evict(self._ordinary)
        if reserved and len(self._spare) >= limits.reserve and not self._evict(self._spare):
            return None
        shared = (self._spare,) if reserved else (self._ordinary, self._places.setdefault(place, Pool()))
        return Connection(address, reserved=reserved, end=end, now=now, pools=(self._everybody, *shared))

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self.release(connection)
        connection.leave()
        place = network_of(connection.address)
        if not self._places.get(place, True):
            del self._places[place]

    def hold(self, connection: Connection, size: int, now: float) -> bool:
        """Count received bytes of a request; where there is no room, drop bodies that stall.

        Returns:
            Whether there is room for them; if not, the connection's bytes are released.
        """
        before = connection.body_bytes
        connection.received_bytes += size
        self._body_bytes += connection.body_bytes - before
        while self._body_bytes > self.limits.body_bytes and connection.body_bytes:
            stalled = self._stalled(self._everybody, now)
            if stalled is None or stalled is connection:
                self.release(connection)
                return False
            self._end(stalled)
        return True

    def release(self, connection: Connection, kept: int = 0) -> None:
        """Note that a request was answered.

        Args:
            connection: where the request came in.
            kept: how many bytes of the next request came with it, and stay in memory.
        """
        before = connection.body_bytes
        connection.received_bytes = kept
        self._body_bytes += connection.body_bytes - before

    def end_overdue(self, now: float) -> None:
        """Break connections that are silent, that stall while many others stall, or whose clients do not read."""
        for connection in self:
            if connection.is_overdue(self.limits, now):
                self._end(connection)
        for pool in list(self._places.values()):
            while len(pool.reading) > self.limits.reading_per_address and (stalled := self._stalled(pool, now)):
                if self._is_exempt(stalled.address):
                    break
                self._end(stalled)

    def _stalled(self, pool: Pool, now: float) -> Connection | None:
        """Return the connection whose body has stalled longest; `None` if none has."""
        slowest = next(iter(pool.reading), None)
        return slowest if slowest is not None and now - slowest.since >= STALLED_S else None

    def _evict(self, among: Pool) -> bool:
        oldest = next(iter(among.yielding), None)
        if oldest is None:
            return False
        self._end(oldest)
        return True

    def _end(self, connection: Connection) -> None:
        self.forget(connection)
        connection.end()

    def _is_exempt(self, address: str) -> bool:
        return within(address, self._exempt)


def within(address: str, networks: Collection[Network]) -> bool:
    """Return whether an address lies in any of the networks; a text that is no IP address lies in none."""
    if not networks:
        return False
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)
