"""Serve /metrics over HTTP, for a process that has no other page."""

from __future__ import annotations

import contextlib
import hmac
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from heartwheel.errors import HeartwheelError
from heartwheel.metrics.exposition import PLAIN, Metrics

_log = logging.getLogger(__name__)


class MetricsServer:
    """A server of this process's metrics, in threads of its own; read-only.

    Args:
        metrics: what to serve.
        host: the address to listen at.
        port: likewise; `0` takes any that is free.
        token: what must be sent as `Authorization: Bearer`; empty asks for nothing.

    Raises:
        HeartwheelError: the address cannot be listened at.
    """

    def __init__(self, metrics: Metrics, host: str, port: int, token: str = "") -> None:
        handler = type("Handler", (_Handler,), {"metrics": metrics, "token": token.encode()})
        try:
            self._server = _Server((host, port), handler)
        except OSError as error:
            raise HeartwheelError(
                f"cannot serve metrics at {host}:{port}: {error.strerror or error}",
                hint="set metrics.host and metrics.port to an address of this machine that is free, or the port to 0",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics-server", daemon=True)

    @property
    def address(self) -> str:
        """Where Prometheus finds the metrics."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


HANDLERS_MAX: Final = 16
"""Most requests that are worked on at once; a further one costs the oldest its place."""

REQUEST_S: Final = 10.0
"""How long a request may take in all, from its first byte to the last one of the answer."""

_PAUSE_S: Final = 0.1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # five silent ones would keep the next waiting

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._running: dict[socket.socket, float] = {}  # and since when, oldest first
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; where none can be accepted the next try waits, as the kernel says so at once."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a request, and end the oldest one where all places are taken."""
        with self._lock:
            if len(self._running) >= HANDLERS_MAX:
                self._end(next(iter(self._running)))
            self._running[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Give the place back."""
        with self._lock:
            self._running.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End the requests that take too long; `serve_forever` calls it twice a second."""
        with self._lock:
            for request, since in list(self._running.items()):
                if time.monotonic() - since > REQUEST_S:
                    self._end(request)

    def _end(self, request: socket.socket) -> None:
        del self._running[request]
        # Its thread notices and closes it.
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver gives it
        """Note who went away in the middle of an answer, instead of a traceback on stderr."""
        _log.debug("an answer to %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    metrics: ClassVar[Metrics]
    token: ClassVar[bytes]
    timeout = 10
    server_version = "heartwheel"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"there is only /metrics here\n", "text/plain; charset=utf-8")
            return
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.token)
        if self.token and not (scheme.lower() == "bearer" and right):
            words = b"send the token of metrics.token as Authorization: Bearer\n"
            self._answer(401, words, "text/plain; charset=utf-8", challenge="Bearer")
            return
        body, content_type = self.metrics.text(self.headers.get("Accept", PLAIN))
        self._answer(200, body, content_type)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def _answer(self, status: int, body: bytes, content_type: str, *, challenge: str = "") -> None:
        self.send_response(status)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet: Prometheus asks every few seconds."""
