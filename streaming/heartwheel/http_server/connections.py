"""Which connections may stay: caps, a reserve for probes, deadlines for silence and for readers that do not read."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Final, NamedTuple

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that are answered on the reserve, too."""

PROGRESS_BYTES: Final = 32 << 10
"""How much of what waits to be sent a reader must take within `Limits.send_s`."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Limits(NamedTuple):
    """Bounds of what connections may cost.

    Args:
        connections: most of them at once, the reserve not counted.
        per_address: most of one address.
        reserve: connections beyond these caps, on which only `PROBES` are answered.
        request_s: how long a connection may take until it has sent its first request, or the next one.
        send_s: how long a reader may take nothing, or less than `PROGRESS_BYTES`.
        buffered_bytes: most that may wait to be sent, of all connections; beyond it only probes are answered.
    """

    connections: int = 512
    per_address: int = 128
    reserve: int = 32
    request_s: float = 10.0
    send_s: float = 20.0
    buffered_bytes: int = 64 << 20


class Stage(Enum):
    """What a connection is doing."""

    WAITING = "waiting"
    ANSWERING = "answering"


class Connection:
    """One connection, and how far it is.

    Args:
        address: of the other end.
        reserved: whether it is beyond the caps.
        end: breaks it at once.
        now: the time, seconds of a monotonic clock.
    """

    def __init__(self, address: str, *, reserved: bool, end: Callable[[], None], now: float) -> None:
        self.address, self.reserved, self.end = address, reserved, end
        self.stage, self.since = Stage.WAITING, now
        self.unsent_bytes: Callable[[], int] = int
        self._unsent, self._taken, self._mark_s = 0, 0, now

    def enter(self, stage: Stage, now: float) -> None:
        """Note what it does from now on."""
        self.stage, self.since = stage, now

    def look(self, now: float) -> None:
        """Note how much the reader has taken."""
        unsent = self.unsent_bytes()
        self._taken += max(0, self._unsent - unsent)
        self._unsent = unsent
        if not unsent or self._taken >= PROGRESS_BYTES:
            self._taken, self._mark_s = 0, now

    def is_overdue(self, limits: Limits, now: float) -> bool:
        """Return whether it was silent for too long, or does not read what it is sent."""
        self.look(now)
        if self._unsent:
            return now - self._mark_s > limits.send_s
        return self.stage is Stage.WAITING and now - self.since > limits.request_s


class Connections:
    """The open connections: who may connect, and whom that costs the place.

    Whoever has sent no request yet, or waits between two, gives way to a newcomer, the oldest first: those who hold
    connections without using them keep nobody out. Where all are in use, newcomers get the reserve.

    Args:
        limits: see there.
        exempt: addresses of proxies, for which the cap of one address does not count.
    """

    def __init__(self, limits: Limits, exempt: Collection[Network] = ()) -> None:
        self.limits, self._exempt = limits, tuple(exempt)
        self._all: dict[Connection, None] = {}  # in the order they came

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._all))

    @property
    def unsent_bytes(self) -> int:
        """How much waits to be sent, of all connections."""
        return sum(each.unsent_bytes() for each in self._all)

    def admit(self, address: str, end: Callable[[], None], now: float) -> Connection | None:
        """Take a new connection, or refuse it with `None`.

        Args:
            address: of the other end.
            end: breaks the connection at once.
            now: the time, seconds of a monotonic clock.
        """
        limits = self.limits
        ordinary = [each for each in self._all if not each.reserved]
        ours = [each for each in ordinary if each.address == address]
        reserved = False
        if len(ours) >= limits.per_address and not self._is_exempt(address):
            reserved = not self._evict(ours)
        elif len(ordinary) >= limits.connections:
            reserved = not self._evict(ordinary)
        if reserved:
            spare = [each for each in self._all if each.reserved]
            if len(spare) >= limits.reserve and not self._evict(spare):
                return None
        connection = Connection(address, reserved=reserved, end=end, now=now)
        self._all[connection] = None
        return connection

    def forget(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._all.pop(connection, None)

    def end_overdue(self, now: float) -> None:
        """Break the connections that are silent, or whose readers do not read."""
        for connection in self:
            if connection.is_overdue(self.limits, now):
                self._end(connection)

    def _evict(self, among: list[Connection]) -> bool:
        waiting = [each for each in among if each.stage is Stage.WAITING]
        if not waiting:
            return False
        self._end(min(waiting, key=lambda each: each.since))
        return True

    def _end(self, connection: Connection) -> None:
        self.forget(connection)
        connection.end()

    def _is_exempt(self, address: str) -> bool:
        return within(address, self._exempt)


def within(address: str, networks: Collection[Network]) -> bool:
    """Return whether an address lies in one of some networks; one that is no IP address lies in none."""
    if not networks:
        return False
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)
