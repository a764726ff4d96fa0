"""The process of one Kafka node: its command lines, its log, its port, its end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from heartwheel.kafka.broker.java import class_archive_file, class_archive_options

HOST: Final = "127.0.0.1"
"""Where nodes listen: for this machine alone."""

LOG_TAIL_BYTES: Final = 3000
"""How much of a log goes into an error message, bytes."""

_FORMAT_HEAP: Final = "128m"
# The first compiler alone starts a broker a third faster; it tops out at 3 million records/s, far above what we feed.
_JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_PR_SET_PDEATHSIG: Final = 1


class NodeCommands:
    """The command lines of one node.

    Args:
        folder: holds its `server.properties` and `log4j2.properties`, and gets its log.
    """

    def __init__(self, java: Path, jars: Sequence[Path], folder: Path) -> None:
        self._java, self._folder = str(java), folder
        self._class_path = ":".join(map(str, jars))
        self._archive = class_archive_options(class_archive_file(jars))
        self._properties = str(folder / "server.properties")

    def format_storage(self) -> list[str]:
        """Return the command that formats the storage for a new cluster."""
        # Hexadecimal ids are valid cluster ids, and none starts with "-", which would be read as an option.
        cluster_id = secrets.token_hex(11)
        arguments = ["format", "--cluster-id", cluster_id, "--config", self._properties]
        return self._java_line(_FORMAT_HEAP, "kafka.tools.StorageTool", arguments)

    def run_broker(self, heap: str) -> list[str]:
        """Return the command that runs the broker with a heap such as `384m`."""
        return self._java_line(heap, "kafka.Kafka", [self._properties])

    def _java_line(self, heap: str, main: str, arguments: list[str]) -> list[str]:
        logging = [
            f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}",
            f"-Dheartwheel.log={self._folder / 'server.log'}",
        ]
        flags = [*_JVM_FLAGS, *self._archive, *logging]
        return [self._java, f"-Xmx{heap}", *flags, "-cp", self._class_path, main, *arguments]


class ProcessLog:
    """What a log file got since now, at most its end.

    Args:
        file: the log; it need not be there yet.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._from = file.stat().st_size if file.exists() else 0

    def read(self) -> str:
        """Read the end of what is new."""
        if not self._file.exists():
            return ""
        return self._file.read_bytes()[self._from :][-LOG_TAIL_BYTES:].decode(errors="replace")


def free_port() -> int:
    """Return a port that no process listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_until_stopped(pid: int) -> None:
    """Wait until all threads of a child that was sent SIGSTOP have stopped: until then it may still answer.

    Args:
        pid: the child's; that it has ended is as good, and is left for its owner to find.
    """
    if sys.platform == "linux":
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def die_with_parent() -> Callable[[], None] | None:
    """Return the hook that has the kernel kill the child with its parent thread; Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded before the fork: loading in the child could deadlock

    def hook() -> None:
        with contextlib.suppress(Exception):
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return hook
