"""One connection: what it is doing, what it may cost, and when it has been silent or unread for too long."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import Final, NamedTuple

PROGRESS_BYTES: Final = 32 << 10
"""How much of what waits to be sent a reader must take within `Limits.send_s`."""

BODY_PROGRESS_BYTES: Final = 16 << 10
"""How much of a body must arrive before its connection counts as one that makes progress."""

FREE_BYTES: Final = 4 << 10
"""The first bytes of each request do not count as body: a heartbeat fits in, so a full budget stops no heartbeat."""

STALLED_S: Final = 1.0
"""A body without progress for this long may be dropped to make room for others."""


class Limits(NamedTuple):
    """Limits of connections.

    Args:
        connections: most of them at once, the reserve not counted.
        per_address: most of one address, of IPv6 of one /64.
        reserve: connections beyond these caps, on which only `PROBES` are answered.
        request_s: how long a connection may take until it has sent the head of its first request, or of the next one,
            and how long until the body of a request is whole.
        send_s: how long a reader may take nothing, or less than `PROGRESS_BYTES`.
        buffered_bytes: most that may wait to be sent, of all connections; beyond it only probes are answered.
        body_bytes: most bytes of requests that are not answered yet, of all connections.
        reading_per_address: most bodies of one address that may stall for longer than `STALLED_S`.
    """

    connections: int = 512
    per_address: int = 128
    reserve: int = 32
    request_s: float = 10.0
    send_s: float = 20.0
    buffered_bytes: int = 64 << 20
    body_bytes: int = 64 << 20
    reading_per_address: int = 16


class Stage(Enum):
    """What a connection is doing: waiting for the head of a request, reading its body, or answering it."""

    WAITING = "waiting"
    READING = "reading"
    ANSWERING = "answering"


class Pool:
    """Connections that share a cap; those of each stage are in the order of their last progress."""

    def __init__(self) -> None:
        self.members: dict[Connection, None] = {}
        self.yielding: dict[Connection, None] = {}
        self.reading: dict[Connection, None] = {}
        self.sending: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self.members)

    def put(self, connection: Connection) -> None:
        """Add a connection, or move it to where its stage belongs."""
        self.members[connection] = None
        self.yielding.pop(connection, None)
        self.reading.pop(connection, None)
        if connection.stage is not Stage.ANSWERING:
            self.yielding[connection] = None
        if connection.stage is Stage.READING:
            self.reading[connection] = None
        if connection.stage is Stage.ANSWERING or connection.unsent_bytes():
            self.sending[connection] = None

    def remove(self, connection: Connection) -> None:
        """Remove a connection if it is there."""
        for part in (self.members, self.yielding, self.reading, self.sending):
            part.pop(connection, None)


class Connection:
    """One connection, its stage and its progress.

    Args:
        address: of the other end.
        reserved: whether it is beyond the caps.
        end: breaks the connection at once.
        now: the time, seconds of a monotonic clock.
        pools: the pools that it counts in.
    """

    def __init__(
        self, address: str, *, reserved: bool, end: Callable[[], None], now: float, pools: Collection[Pool] = ()
    ) -> None:
        self.address, self.reserved, self.end, self._pools = address, reserved, end, tuple(pools)
        self.stage, self.entered, self.since = Stage.WAITING, now, now
        self.unsent_bytes: Callable[[], int] = int
        self.received_bytes = 0
        """Bytes of requests that are not answered yet."""
        self._progress = 0
        self._unsent, self._taken, self._mark_s = 0, 0, now
        self._put()

    @property
    def body_bytes(self) -> int:
        """The number of received bytes that count against `Limits.body_bytes`."""
        return max(0, self.received_bytes - FREE_BYTES)

    def enter(self, stage: Stage, now: float) -> None:
        """Enter a stage."""
        if stage is not self.stage:
            self.entered, self._progress = now, 0
        self.stage, self.since = stage, now
        self._put()

    def read(self, size: int, now: float) -> None:
        """Note that a part of a body arrived; small parts are no progress until they add up."""
        self._progress += size
        if self._progress >= BODY_PROGRESS_BYTES:
            self._progress, self.since = 0, now
            self._put()

    def note_unsent(self, now: float) -> None:
        """Note how much the client has read."""
        unsent = self.unsent_bytes()
        self._taken += max(0, self._unsent - unsent)
        self._unsent = unsent
        if not unsent or self._taken >= PROGRESS_BYTES:
            self._taken, self._mark_s = 0, now

    def is_overdue(self, limits: Limits, now: float) -> bool:
        """Return whether it was silent for too long, or does not read its answers."""
        self.note_unsent(now)
        if self._unsent:
            return now - self._mark_s > limits.send_s
        return self.stage is not Stage.ANSWERING and now - self.entered > limits.request_s

    def leave(self) -> None:
        """Free its places in the pools."""
        for pool in self._pools:
            pool.remove(self)
        self._pools = ()

    def _put(self) -> None:
        for pool in self._pools:
            pool.put(self)
