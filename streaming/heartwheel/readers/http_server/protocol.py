"""HTTP on one connection: uvicorn's protocol, with what the limits of connections need to know.

tests/project/test_private_parts.py names the parts of uvicorn that this overrides and reads.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from heartwheel.readers.http_server.connection import FREE_BYTES, Connection, Stage
from heartwheel.readers.http_server.connections import PROBES, Connections
from heartwheel.readers.http_server.guard import SECURITY_HEADERS, secured
from heartwheel.readers.http_server.problems import RequestError, problem_response

RETRY_S: Final = 5
"""After how long clients should try again that were refused because everything is in use, seconds."""

# Invalid requests do not deserve a line in the log each time; uvicorn would warn of each.
_log: Final = logging.getLogger(__name__)
_log.setLevel(logging.ERROR)


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is counted.

    Args:
        connection: this one.
        connections: all open ones.
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
        self._no_room = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the protocol, with the transport's unsent bytes counted."""
        super().connection_made(transport)
        self._connection.unsent_bytes = transport.get_write_buffer_size
        self._connection.end = transport.abort

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the connection's place."""
        self._connection.unsent_bytes = int
        self._connections.forget(self._connection)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on if there is room; an incomplete request does not count as an answered one."""
        now = time.monotonic()
        if not self._connections.hold(self._connection, len(data), now):
            if self._stage() is Stage.WAITING:
                super().data_received(data[:FREE_BYTES])  # the head, so that the application can answer it
            self._turn_away()
            return
        super().data_received(data)
        if self.conn.our_state is h11.DONE:
            # The rest of a request that was answered already is dropped as it arrives.
            self._connections.release(self._connection)
        stage = self._stage()
        if stage is not self._connection.stage:
            self._connection.enter(stage, now)
        elif stage is Stage.READING:
            self._connection.read(len(data), now)

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has arrived already."""
        self._connections.release(self._connection, kept=len(self.conn.trailing_data[0]))
        super().on_response_complete()
        self._connection.enter(self._stage(), time.monotonic())

    def shutdown(self) -> None:
        """Finish the answers to whole requests, and wait for no body any more."""
        if self._connection.stage is Stage.READING:
            self.transport.abort()
        else:
            super().shutdown()

    def resume_writing(self) -> None:
        """Note that the client reads."""
        self._connection.note_unsent(time.monotonic())
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer 400 to bytes that are not HTTP, with the headers of every answer and without a line in the log."""
        self._send_plain(400, b"Bad Request", msg)

    def _send_plain(self, status: int, reason: bytes, msg: str) -> None:
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *SECURITY_HEADERS.items()]
        try:
            head = self.conn.send(h11.Response(status_code=status, headers=headers, reason=reason))
            body = self.conn.send(h11.Data(data=msg.encode("ascii")))
            self.transport.write((head or b"") + (body or b"") + (self.conn.send(h11.EndOfMessage()) or b""))
        except h11.LocalProtocolError:
            pass  # an answer was on its way already
        self.transport.close()

    def _stage(self) -> Stage:
        if self.cycle is None or self.cycle.response_complete:
            return Stage.WAITING
        return Stage.READING if self.cycle.more_body else Stage.ANSWERING

    def _turn_away(self) -> None:
        """Stop reading a connection for which there is no room; an application waiting for a body gets a disconnect."""
        self.flow.pause_reading()
        if self._stage() is Stage.WAITING:
            self._send_plain(503, b"Service Unavailable", "Too many requests are on their way.")
            return
        self.cycle.keep_alive = False
        if self.cycle.more_body:
            self._no_room = True
            self.cycle.body = bytearray()
            self.cycle.message_event.set()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_with_room() -> Message:
            message = await receive()
            if self._no_room:
                hint = "send it again in a moment"
                raise RequestError(503, "the bodies of too many requests are on their way", hint, retry_s=RETRY_S)
            return message

        async def send_as_last(message: Message) -> None:
            # What was not read of a request ends its connection. A client that is not told may send its next request
            # on it, and lose that (tests/gateway/test_gateway.py::test_the_gateway_counts_all_bodies).
            if message["type"] == "http.response.start" and self._no_room:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        app = self._inner if scope["path"] in self._probes else self._refusal(scope) or self._inner
        try:
            await app(scope, receive_with_room, send_as_last)
        except asyncio.CancelledError:
            # The server is stopping and its grace period is over: uvicorn would log a traceback for each.
            self.cycle.disconnected = True
            self.transport.abort()

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = {"retry-after": str(RETRY_S), "connection": "close"}
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # RFC 9112, 6.1: an intermediary may have used one of the two, and seen the request end elsewhere.
            hint = "send one of them"
            error = "the request has Content-Length and Transfer-Encoding"
            return secured(problem_response(400, error, hint, {"connection": "close"}))
        if self._connection.reserved:
            hint = "close some pages, or raise dashboard.connections_max or dashboard.connections_per_address_max"
            return secured(problem_response(503, "all connections are in use", hint, headers))
        if self._connections.unsent_bytes > self._connections.limits.buffered_bytes:
            hint = "too many do not read what they asked for; they are cut off in a moment"
            return secured(problem_response(503, "too much waits to be sent", hint, headers))
        return None
