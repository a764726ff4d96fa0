"""A receiver of webhooks on a real socket that verifies signatures, keeps what it got, and fails when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.notify.message import Body
from heartwheel.readers.notify.signature import verify


class Receiver:
    """Listen on a free port for the length of a `with` block.

    Args:
        keys: one of them must have signed.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.status = 204
        self.got: dict[str, Body] = {}
        self.refused = 0
        self.repeated = 0
        self._keys = keys
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        """Where to post to."""
        return f"http://127.0.0.1:{self._server.server_port}/hooks/T00/top-secret-path"

    @property
    def bodies(self) -> list[Body]:
        """What came, each id once, in the order of arrival."""
        return list(self.got.values())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, headers: dict[str, str], data: bytes) -> int:
        """Take one request, and give the status to answer with."""
        if self.status >= 300:
            self.refused += 1
            return self.status
        verify(headers, data, self._keys, now_ms=wall_ms())
        body = msgspec.json.decode(data, type=Body)
        assert body.id == headers["webhook-id"]
        self.repeated += body.id in self.got
        self.got[body.id] = body
        return self.status

    def _handler(receiver) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler's own self is the inner one
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.take({name.lower(): text for name, text in self.headers.items()}, data))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        return Handler
