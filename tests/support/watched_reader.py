"""A reader of the topics as a process, which is asked while much happens; for benchmarks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any, Final

from heartwheel.base.percentiles import percentile
from support.background import Background

ASK_S: Final = 0.25
"""Pause between two rounds of questions."""

_TIMEOUT_S: Final = 60


@contextlib.contextmanager
def process(words: list[str], log: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a reader for the length of a block."""
    with subprocess.Popen([sys.executable, *words], text=True, stdout=subprocess.PIPE, stderr=log) as reader:
        try:
            yield reader
        finally:
            reader.terminate()


def first_line(reader: subprocess.Popen[str]) -> str:
    """Return the first line that a reader prints."""
    assert reader.stdout is not None
    line = reader.stdout.readline().strip()
    if not line:
        raise RuntimeError("the reader has ended; its log tells why")
    return line


class Asked(Background):
    """Ask a dashboard, or a page of metrics, in turns, and keep how long each answer took and how large it was.

    Args:
        addresses: what to ask, by the name that the figures have.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._addresses = addresses
        self.took_ms: dict[str, list[float]] = {name: [] for name in addresses}
        self.bytes: dict[str, int] = dict.fromkeys(addresses, 0)
        self.states: list[str] = []
        self.oldest_ms = 0

    def _run(self) -> None:
        while not self._over.wait(ASK_S):
            for name, address in self._addresses.items():
                began_s = time.perf_counter()
                body = get(address)
                self.took_ms[name].append((time.perf_counter() - began_s) * 1e3)
                self.bytes[name] = max(self.bytes[name], len(body))
                if name == "/api/now":
                    now = json.loads(body)
                    self.oldest_ms = max(self.oldest_ms, now["at_ms"] - now["job"]["at_ms"])
                    state = now["health"]["state"]
                    if self.states[-1:] != [state]:
                        self.states.append(state)

    def figures(self) -> dict[str, Any]:
        """Sum up."""
        return {
            name: value
            for path, took in self.took_ms.items()
            for name, value in (
                (f"{path}, p50, ms", round(percentile(took, 0.5), 1)),
                (f"{path}, longest, ms", round(percentile(took, 1), 1)),
                (f"{path}, largest answer, bytes", self.bytes[path]),
            )
        } | (
            {"health, in turn": ", ".join(self.states), "oldest row of the job, ms": self.oldest_ms}
            if self.states
            else {}
        )


def get(address: str) -> bytes:
    """Fetch an address."""
    with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - of this machine
        body: bytes = answer.read()
        return body


class Stream:
    """A listener of the page's stream, as a browser is one."""

    def __init__(self, address: str) -> None:
        self.bytes = 0
        self._answer = urllib.request.urlopen(address, timeout=_TIMEOUT_S)  # noqa: S310 - of this machine
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            while piece := self._answer.read1(1 << 16):
                self.bytes += len(piece)


def counted(address: str) -> int:
    """Count the expirations that a reader has taken, by its metrics."""
    lines = get(address).decode().splitlines()
    return sum(
        int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("heartwheel_expirations_total{")
    )
