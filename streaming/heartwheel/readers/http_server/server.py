"""Serve an application in a thread of its own, next to a job, a canary or a wait for Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import threading
from collections.abc import Callable, Collection
from typing import Any, Final, Self

import uvicorn
from starlette.types import ASGIApp

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.worker import Worker
from heartwheel.readers.http_server.acceptor import Acceptor
from heartwheel.readers.http_server.connection import Connection, Limits
from heartwheel.readers.http_server.connections import Connections, Network
from heartwheel.readers.http_server.open_files import raise_limit
from heartwheel.readers.http_server.protocol import LimitedProtocol

_GRACE_S: Final = 2
_BACKLOG: Final = 128
_SEND_BUFFER_BYTES: Final = 128 << 10


class HttpServerError(HeartwheelError):
    """A server cannot listen or has ended by itself."""


class HttpServer:
    """A server of an application over HTTP, in a thread of its own.

    Args:
        app: the ASGI application.
        host: the address to listen on.
        port: the port; `0` takes any that is free.
        limits: of its connections.
        exempt: addresses of proxies, for which the cap of one address does not count.
        tls: for TLS.
        base_path: what stands before each path.
        what: its name in errors.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        limits: Limits | None = None,
        exempt: Collection[Network] = (),
        tls: ssl.SSLContext | None = None,
        base_path: str = "",
        what: str = "dashboard",
    ) -> None:
        self._what = what
        self._host, self._port, self._tls, self._base_path = host, port, tls, base_path
        self.connections = Connections(limits or Limits(), exempt)
        self.closing: Callable[[], None] | None = None
        """Called in the server's own thread before it stops, to close open streams."""
        config = uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(self.connections.limits.request_s),
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = _Server(config, self.connections, tls, base_path)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address to open in a browser on this machine; its port is known once the server listens."""
        name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, self._host)  # noqa: S104 - compared, not bound
        name = f"[{name}]" if ":" in name and not name.startswith("[") else name
        return f"{'https' if self._tls else 'http'}://{name}:{self._port}{self._base_path}/"

    @property
    def running(self) -> bool:
        """Whether the server is running."""
        return self._worker is not None and self._worker.alive

    def start(self) -> None:
        """Start the server, and return once it answers requests.

        Raises:
            HttpServerError: the address cannot be listened on.
        """
        raise_limit()
        listening = _listen(self._host, self._port, self._what)
        self._port = listening.getsockname()[1]
        self._worker = Worker(lambda: self._run(listening), f"heartwheel-{self._what}")
        self._worker.start()
        while not self._server.started and self._worker.alive:
            self._ready.wait(0.01)
        if not self._server.started:
            listening.close()
            raise HttpServerError(f"the {self._what} ended as it started", hint="its log tells why")

    def stop(self) -> None:
        """Close open streams, stop the server, and wait until it has ended."""
        if self._worker is None or self._loop is None:
            return
        self._server.should_exit = True
        if self._worker.alive and self.closing is not None:
            # An open stream would delay the end of the server until its grace period is over.
            self._loop.call_soon_threadsafe(self.closing)
        self._worker.stop()

    def _run(self, listening: socket.socket) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[listening])

        with listening:
            asyncio.run(serve())


class _Server(uvicorn.Server):
    """A `uvicorn.Server` that accepts connections within limits."""

    def __init__(
        self, config: uvicorn.Config, connections: Connections, tls: ssl.SSLContext | None, base_path: str
    ) -> None:
        super().__init__(config)
        self._connections, self._tls, self._base_path = connections, tls, base_path

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            self.should_exit = True
            return
        self.servers: list[Any] = [
            Acceptor(each, self._protocol, self._connections, self._tls) for each in sockets or ()
        ]
        self.started = True

    def _protocol(self, connection: Connection) -> asyncio.Protocol:
        return LimitedProtocol(
            connection,
            self._connections,
            self._base_path,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


def is_free(host: str, port: int) -> bool:
    """Return whether an address can be listened on at this moment."""
    try:
        check_free(host, port)
    except HttpServerError:
        return False
    return True


def check_free(host: str, port: int) -> None:
    """Raise if an address cannot be listened on at this moment.

    Raises:
        HttpServerError: it cannot; the hint says what to do.
    """
    _listen(host, port).close()


def _listen(host: str, port: int, what: str = "dashboard") -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise HttpServerError(
            f"the {what} cannot listen on {host}: {error.strerror or error}", hint="name another --host"
        ) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit it. With the default, the kernel buffers megabytes for each client that does not
        # read.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise HttpServerError(
            f"the {what} cannot listen on {host}:{port}: {error.strerror or error}", hint=_hint(error, port, what)
        ) from error
    return listening


def _hint(error: OSError, port: int, what: str) -> str:
    if error.errno == errno.EADDRINUSE:
        flag = "" if what == "metrics" else f"--port {port + 1}, or "  # metrics are a part of other commands
        other = f"{flag}HEARTWHEEL_{what.upper()}__PORT={port + 1} in the environment"
        return f"something listens there already, perhaps another {what}; take another port: {other}"
    if error.errno == errno.EACCES:
        return "ports below 1024 need rights; take a higher one, such as --port 8484"
    return "name another --host or --port; --host 127.0.0.1 listens on this machine alone"
