"""Serve /metrics over HTTP, for a process that has no other page."""

from __future__ import annotations

import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self

from heartwheel.errors import HeartwheelError
from heartwheel.metrics.exposition import PLAIN, Metrics

_log = logging.getLogger(__name__)


class MetricsServer:
    """Serve the metrics of this process from threads of its own; read-only, without a login.

    Args:
        metrics: what to serve.
        host: the address to listen at.
        port: likewise; `0` takes any that is free.

    Raises:
        HeartwheelError: the address can not be listened at.
    """

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        handler = type("Handler", (_Handler,), {"metrics": metrics})
        try:
            self._server = _Server((host, port), handler)
        except OSError as error:
            raise HeartwheelError(
                f"can not serve metrics at {host}:{port}: {error.strerror or error}",
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - socketserver gives it
        """Note who went away in the middle of an answer, instead of a traceback on stderr."""
        _log.debug("an answer to %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    metrics: ClassVar[Metrics]
    timeout = 10
    server_version = "heartwheel"
    sys_version = ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"there is only /metrics here\n", "text/plain; charset=utf-8")
            return
        body, content_type = self.metrics.text(self.headers.get("Accept", PLAIN))
        self._answer(200, body, content_type)

    do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet: Prometheus asks every few seconds."""
