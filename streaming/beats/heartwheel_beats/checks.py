"""Ways to see whether a worker still works, and not only lives: a file it touches, a port, a command."""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from typing import Protocol


class Check(Protocol):
    """Look at a worker."""

    def __call__(self, timeout_s: float) -> str:
        """Give an empty text if all is well, else the check and what is wrong.

        Args:
            timeout_s: how long it may take, seconds.
        """


class AliveFile:
    """Ask for a file that the worker touches.

    Args:
        path: the file.
        within_s: how old it may be, seconds.
    """

    def __init__(self, path: str, within_s: float) -> None:
        self._path, self._within_s = path, within_s

    def __call__(self, timeout_s: float) -> str:  # noqa: ARG002 - it takes no time
        """Look how old the file is."""
        try:
            age_s = time.time() - os.stat(self._path).st_mtime  # noqa: PTH116 - one call, no object
        except OSError as error:
            return f"alive file {self._path}: {error.strerror}"
        if age_s > self._within_s:
            return f"alive file {self._path}: not touched for {age_s:.0f} s"
        return ""


class TcpPort:
    """Ask for a port of this machine that takes connections.

    Args:
        port: on 127.0.0.1.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, timeout_s: float) -> str:
        """Connect, and hang up."""
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout_s).close()
        except OSError as error:
            return f"tcp {self._port}: {error.strerror or error}"
        return ""


class Command:
    """Ask for a command that ends with 0; no shell is used.

    Args:
        words: the command as one text.
        run: runs it within so many seconds and gives its exit code; negative for a signal, `None` if it took too long.

    Raises:
        ValueError: the quotes do not match, or it is empty.
    """

    def __init__(self, words: str, run: Callable[[Sequence[str], float], int | None]) -> None:
        self._words, self._run, self._arguments = words, run, shlex.split(words)
        if not self._arguments:
            raise ValueError("the check is empty")

    def __call__(self, timeout_s: float) -> str:
        """Run it."""
        try:
            code = self._run(self._arguments, timeout_s)
        except OSError as error:
            return f"check {self._words}: {error.strerror}"
        if code is None:
            return f"check {self._words}: not over within {timeout_s:.0f} s"
        return f"check {self._words}: exit code {code}" if code else ""
