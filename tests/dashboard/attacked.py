"""A dashboard under attack from its own process: prints by how much its memory has grown; started by a test."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path.cwd() / "tests"))

from support.dashboard_server import dashboard
from support.output_rows import T0, expired, topic_rows

COUNT = 120


def resident() -> int:
    """Give the resident memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


with dashboard(now_ms=lambda: T0) as server, contextlib.ExitStack() as stack:
    epoch = ""
    with socket.create_connection(("127.0.0.1", server.port)) as end:
        end.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while b"event: hello" not in text:
            text += end.recv(65_536)
        epoch = text.partition(b"id: ")[2].partition(b"-")[0].decode()
    for at in range(0, 6_000, 500):
        server.tell(topic_rows(*(expired("g", f"{'m' * 300}{i}", T0 + i) for i in range(at, at + 500))))
        time.sleep(0.3)  # a beat of the hub makes a frame of it
    before = resident()
    for at in range(2 * COUNT):
        end = stack.enter_context(socket.socket())
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        end.connect(("127.0.0.1", server.port))
        path = "/api/expirations.json" if at % 2 else "/api/stream"
        with contextlib.suppress(OSError):
            end.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {epoch}-1\r\n\r\n".encode())
    most = 0
    for _ in range(10):
        most = max(most, resident())
        time.sleep(0.2)
    sys.stdout.write(json.dumps({"grown_bytes": most - before, "before_bytes": before}))
