"""Ways to see whether a worker still works, and not only lives: a file it touches, a port, a command."""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from typing import Protocol


class Check(Protocol):
    """Look at a worker; its text names what is looked at."""

    def __call__(self, timeout_s: float) -> str:
        """Give an empty text if all is well, else the check and what is wrong."""


class AliveFile:
    """Ask for a file that the worker touches.

    Args:
        within_s: how old it may be, seconds.
    """

    def __init__(self, path: str, within_s: float) -> None:
        self._path, self._within_s = path, within_s
        self._seen_ns: int | None = None
        self._touched_s = self._looked_s = 0.0

    def __str__(self) -> str:
        return f"alive file {self._path}"

    def __call__(self, timeout_s: float) -> str:  # noqa: ARG002 - it takes no time
        """Look how old the file is."""
        try:
            touched_ns = os.stat(self._path).st_mtime_ns  # noqa: PTH116 - one call, no object
        except OSError as error:
            return f"{self}: {error.strerror}"
        now_s = time.monotonic()
        if touched_ns != self._seen_ns:
            self._touched_s = now_s - self._age_s(touched_ns, now_s)
            self._seen_ns = touched_ns
        self._looked_s = now_s
        age_s = now_s - self._touched_s
        if age_s > self._within_s:
            return f"{self}: not touched for {age_s:.0f} s"
        return ""

    def _age_s(self, touched_ns: int, now_s: float) -> float:
        """Return how long ago a touch was that is seen now; the wall clock may be set: it is believed within bounds."""
        wall_s = max(0.0, time.time() - touched_ns / 1e9)
        return wall_s if self._seen_ns is None else min(wall_s, now_s - self._looked_s)


class TcpPort:
    """Ask for a port of this machine that takes connections.

    Args:
        port: on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def __str__(self) -> str:
        return f"tcp 127.0.0.1:{self._port}"

    def __call__(self, timeout_s: float) -> str:
        """Connect, and hang up."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout_s) as end:
                # The kernel may take the very port to connect from, where nothing listens, and connect it with itself.
                itself = end.getsockname() == end.getpeername()
        except OSError as error:
            return f"{self}: {error.strerror or error}"
        return f"{self}: nothing listens" if itself else ""


class Command:
    """Ask for a command that ends with 0; no shell is used.

    Args:
        words: the command as one text.
        run: runs it within so many seconds and gives its exit code; negative for a signal, `None` if it took too long.

    Raises:
        ValueError: the quotes do not match, or it is empty.
    """

    def __init__(self, words: str, run: Callable[[Sequence[str], float], int | None]) -> None:
        try:
            self._words, self._run, self._arguments = words, run, shlex.split(words)
        except ValueError as error:
            raise ValueError(f"--check {words!r} is no command: {error}") from None
        if not self._arguments:
            raise ValueError("the check is empty")

    def __str__(self) -> str:
        return f"check {self._words}"

    def __call__(self, timeout_s: float) -> str:
        """Run it."""
        try:
            code = self._run(self._arguments, timeout_s)
        except OSError as error:
            return f"{self}: {error.strerror}"
        if code is None:
            return f"{self}: not over within {timeout_s:.0f} s"
        return f"{self}: exit code {code}" if code else ""
