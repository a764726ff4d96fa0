"""The API of a Docker engine on a Unix socket, as far as logs of containers are followed by it.

As documented: a log is a stream of frames, each with eight bytes before it, or the bytes themselves if the container
has a terminal. A line of more than 16 KiB is several entries. A container that is started again has the same log.
"""

from __future__ import annotations

import random
import socketserver
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from support.container_logs import SECOND_NS, KeptLog, stamped
from support.runtime_api import POLL_S, RuntimeApi, RuntimeHandler

ENTRY_BYTES_MAX: Final = 16 << 10
"""Longest entry; a longer line is several."""


class DockerApi(RuntimeApi, socketserver.UnixStreamServer):
    """An engine; a context manager.

    Args:
        path: of the socket.
        rng: decides where answers are cut, if they are.
    """

    def __init__(self, path: Path, rng: random.Random | None = None) -> None:
        super().__init__(str(path), _Handler)
        self.rng = rng
        self.containers: dict[str, tuple[KeptLog, dict[str, Any]]] = {}

    def put(self, name: str, log: KeptLog, *, tty: bool = False, **labels: str) -> None:
        """Make a container, in the place of one of that name."""
        self.containers[name] = (log, {"Tty": tty, "Labels": labels})


class _Handler(RuntimeHandler):
    server: DockerApi

    def do_GET(self) -> None:  # noqa: N802 - http.server's name
        at = urlsplit(self.path)
        query, words = dict(parse_qsl(at.query)), at.path.split("/")
        if at.path == "/containers/json":
            self.json(200, [self._listed(name) for name in list(self.server.containers)])
            return
        found = [(log, more) for log, more in self.server.containers.values() if log.id == words[2]]
        if not found:
            self.json(404, {"message": f"No such container: {words[2]}"})
        elif words[3] == "json":
            self.json(200, {"Config": found[0][1]})
        else:
            self._log(found[0][0], query, tty=found[0][1]["Tty"])

    def _listed(self, name: str) -> dict[str, Any]:
        log, more = self.server.containers[name]
        state = "running" if log.is_running else "exited"
        return {"Id": log.id, "Names": [f"/{name}"], "State": state, "Labels": more["Labels"]}

    def _log(self, log: KeptLog, query: dict[str, str], *, tty: bool) -> None:
        self.begin()
        since_ns, follows = int(query.get("since", "0")) * SECOND_NS, query["follow"] == "1"
        at, rng = 0, self.server.rng
        while not self.server.is_over:
            with log.change:
                some, at, runs = log.entries[at:], len(log.entries), log.is_running
            data = b"".join(_framed(at_ns, line, tty=tty) for at_ns, line in some if at_ns >= since_ns)
            if rng is not None and data and rng.random() < 0.3:
                self.chunk(data[: rng.randrange(len(data))])
                self.break_off()
                return
            for begin in range(0, len(data), 1000):
                self.chunk(data[begin : begin + 1000])
            if not follows or not runs:
                break
            with log.change:
                log.change.wait_for(lambda: len(log.entries) > at or not log.is_running, POLL_S)  # noqa: B023
        self.chunk(b"")


def _framed(at_ns: int, line: bytes, *, tty: bool) -> bytes:
    """Return a line as entries, each in a frame if there is no terminal."""
    if tty:
        return stamped(at_ns, line)
    parts = [line[begin : begin + ENTRY_BYTES_MAX] for begin in range(0, len(line), ENTRY_BYTES_MAX)]
    entries = [stamped(at_ns, part) for part in parts]
    return b"".join(b"\x01\0\0\0" + len(entry).to_bytes(4) + entry for entry in entries)
