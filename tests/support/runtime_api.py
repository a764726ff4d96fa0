"""What the servers have in common that stand for the API of a container runtime: a thread, and chunked answers."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

POLL_S: Final = 0.05


class RuntimeApi(socketserver.ThreadingMixIn):
    """Runs a server in a thread, for the length of a `with` block; stands before the class of the server."""

    daemon_threads = True
    block_on_close = False
    is_over = False

    def __enter__(self) -> Self:
        serve = self.serve_forever  # type: ignore[attr-defined]  # of the server
        self._thread = threading.Thread(target=serve, kwargs={"poll_interval": POLL_S}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over = True
        self.cut()
        self.shutdown()  # type: ignore[attr-defined]  # of the server
        self.server_close()
        self._thread.join()

    def cut(self) -> None:
        """Cut all connections, if the server knows them."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore that a client is gone."""


class RuntimeHandler(BaseHTTPRequestHandler):
    """Answers in JSON, and in chunks."""

    protocol_version = "HTTP/1.1"

    def begin(self, **headers: str) -> None:
        """Begin an answer in chunks."""
        self.send_response(200)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        """Send a part of an answer; an empty one ends it."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def break_off(self) -> None:
        """End an answer before its time, with its connection."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def json(self, code: int, value: Any) -> None:
        """Answer in JSON."""
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing."""
