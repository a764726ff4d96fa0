"""A gateway for tests of workers: it keeps what it is sent, and answers as it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class GatewayDouble:
    """Hold what came, and the status of the next answers."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 202
        self.answer = b""
        self.rows: list[dict[str, Any]] = []
        self.tokens: set[str] = set()
        self.asked_to_leave = 0

    def leaves(self, member: str | None = None) -> list[str]:
        """List the reasons of the leaves that came, of one member or of all."""
        return self._said("reason", member)

    def failures(self, member: str | None = None) -> list[str]:
        """List how workers failed, one of them or all."""
        return self._said("failure", member)

    def _said(self, name: str, member: str | None) -> list[str]:
        rows = [row for row in list(self.rows) if row.get("type") == "leave" and name in row]
        return [row[name] for row in rows if member in (None, row["member_id"])]

    def heartbeats(self, member: str | None = None) -> int:
        """Count the heartbeats that came, of one member or of all."""
        return sum(row.get("type") is None and member in (None, row["member_id"]) for row in list(self.rows))

    def members(self) -> set[str]:
        """Name who sent anything."""
        return {row["member_id"] for row in list(self.rows)}


@contextmanager
def gateway_double() -> Iterator[GatewayDouble]:
    """Run one on a free port of this machine."""
    double = GatewayDouble()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = double.status
            double.asked_to_leave += row.get("type") == "leave"
            if status == 202:
                double.rows.append(row)
            double.tokens.add(self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(double.answer)))
            self.end_headers()
            self.wfile.write(double.answer)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()


def wait_until(true: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.01)
