"""HTTP on one connection: uvicorn's protocol, and what the limits of connections need to know of it."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from heartwheel.http_server.connections import PROBES, Connection, Connections, Stage
from heartwheel.http_server.guard import SECURITY_HEADERS, secured
from heartwheel.http_server.problems import problem_response

RETRY_S: Final = 5
"""How long those should wait who are turned away because all is in use, seconds."""

# What others send is no reason for a line in the log each time: uvicorn warns of it.
_log: Final = logging.getLogger(__name__)
_log.setLevel(logging.ERROR)


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is counted.

    Args:
        connection: this one.
        connections: all of them.
        base_path: what may stand before each path.
        options: of uvicorn's protocol.
    """

    def __init__(self, connection: Connection, connections: Connections, base_path: str, **options: Any) -> None:
        super().__init__(**options)
        self.logger = _log
        self._connection, self._connections = connection, connections
        self._probes = PROBES | {base_path + path for path in PROBES}
        self._inner: ASGIApp = self.app
        self.app = self._answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and let what waits to be sent be counted."""
        super().connection_made(transport)
        self._connection.unsent_bytes = transport.get_write_buffer_size
        self._connection.end = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._connection.unsent_bytes = int
        self._connections.forget(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; a part of a request does not count as one."""
        super().data_received(data)
        if self._connection.stage is Stage.WAITING and self._is_answering():
            self._connection.enter(Stage.ANSWERING, time.monotonic())

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it is there already."""
        super().on_response_complete()
        stage = Stage.ANSWERING if self._is_answering() else Stage.WAITING
        self._connection.enter(stage, time.monotonic())

    def resume_writing(self) -> None:
        """Note that the reader reads."""
        self._connection.look(time.monotonic())
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with the headers that every answer has, and without a line in the log for each."""
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS.items()]
        try:
            head = self.conn.send(h11.Response(status_code=400, headers=headers, reason=b"Bad Request"))
            body = self.conn.send(h11.Data(data=msg.encode("ascii")))
            self.transport.write((head or b"") + (body or b"") + (self.conn.send(h11.EndOfMessage()) or b""))
        except h11.LocalProtocolError:
            pass  # an answer was on its way already
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._inner if scope["path"] in self._probes else self._refusal() or self._inner
        await app(scope, receive, send)

    def _refusal(self) -> ASGIApp | None:
        headers = {"retry-after": str(RETRY_S), "connection": "close"}
        if self._connection.reserved:
            hint = "close some pages, or raise dashboard.connections_max or dashboard.connections_per_address_max"
            return secured(problem_response(503, "all connections are in use", hint, headers))
        if self._connections.unsent_bytes > self._connections.limits.buffered_bytes:
            hint = "too many do not read what they asked for; they are cut off in a moment"
            return secured(problem_response(503, "too much waits to be sent", hint, headers))
        return None
