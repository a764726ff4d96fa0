"""Accept connections: each is counted before its first byte, and errors are logged at a limited rate."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Final

from heartwheel.base.rare_log import RareLog
from heartwheel.readers.http_server.connection import Connection
from heartwheel.readers.http_server.connections import Connections

SWEEP_S: Final = 0.5
"""How often silent connections, and those that do not read, are looked for."""

LOG_S: Final = 10.0
"""Shortest time between two log lines about connections that could not be accepted."""

_PAUSE_S: Final = 0.1

_log = logging.getLogger(__name__)

Factory = Callable[[Connection], asyncio.Protocol]
"""Makes the protocol of a connection."""


class Acceptor:
    """A thread that accepts connections until it is closed.

    `asyncio.Server` accepts without a bound, logs a traceback for each error, and does not show connections whose TLS
    handshake has not ended.

    Args:
        listening: the socket that listens; the caller closes it.
        factory: makes the protocol of a connection.
        connections: decides who may connect.
        tls: for TLS.
    """

    def __init__(
        self, listening: socket.socket, factory: Factory, connections: Connections, tls: ssl.SSLContext | None = None
    ) -> None:
        self._listening, self._factory, self._connections, self._tls = listening, factory, connections, tls
        self._opening: set[asyncio.Task[None]] = set()
        self._failed = RareLog(_log, LOG_S)
        listening.setblocking(False)
        self._tasks = [asyncio.create_task(self._accept()), asyncio.create_task(self._sweep())]

    def close(self) -> None:
        """Stop accepting connections."""
        for task in (*self._tasks, *self._opening):
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until all its tasks have ended."""
        await asyncio.gather(*self._tasks, *self._opening, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError as error:
                why = error.strerror or error
                self._failed.warning("connections could not be accepted: %s (since the last line: %d)", why)
                await asyncio.sleep(_PAUSE_S)  # out of files, the kernel would report it again at once
                continue
            self._take(accepted, address)

    def _take(self, accepted: socket.socket, address: Any) -> None:
        ending = _Ending(accepted)
        connection = self._connections.admit(str(address[0]), ending, time.monotonic())
        if connection is None:
            accepted.close()
            return
        task = asyncio.create_task(self._open(accepted, connection, ending))
        ending.task = task
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket.socket, connection: Connection, ending: _Ending) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._factory(connection),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._connections.limits.request_s if self._tls else None,
            )
        except BaseException as error:
            self._connections.forget(connection)
            accepted.close()
            if isinstance(error, OSError):  # the other end went away, or speaks no TLS: its own affair
                return
            raise
        ending.transport = transport

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            with contextlib.suppress(OSError):
                self._connections.end_overdue(time.monotonic())


class _Ending:
    """A protocol that breaks a connection at once, whether or not its TLS handshake has ended."""

    def __init__(self, accepted: socket.socket) -> None:
        self._accepted = accepted
        self.task: asyncio.Task[None] | None = None
        self.transport: asyncio.WriteTransport | None = None

    def __call__(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.task is not None:
            self.task.cancel()
        else:
            self._accepted.close()
