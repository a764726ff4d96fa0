"""The `pyspark` shell as its user has it: a process, into which lines are typed, and what it prints."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple, Self

from support.job import PATIENCE_S, wait_for
from support.spark_programs import BIN, driver_options

_BATCH = re.compile(r"^Batch: (\d+)$")


class Shown(NamedTuple):
    """A row that the console sink has printed.

    Args:
        batch: number of its batch.
        at_s: when it was printed, epoch s.
        row: its cells by column.
    """

    batch: int
    at_s: float
    row: dict[str, str]


class PysparkShell:
    """Runs `pyspark` during a `with` block.

    Args:
        words: its arguments.
        folder: where it runs, and where its catalog is.
    """

    def __init__(self, words: list[str], folder: Path) -> None:
        self._words = words
        self._folder = folder
        self._lines: list[tuple[float, str]] = []
        self._marks = 0

    def __enter__(self) -> Self:
        # `-i`, as the shell is no terminal; PySpark's own shell script makes the session.
        env = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON_OPTS": "-i",
            "PYTHONUNBUFFERED": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._process = subprocess.Popen(
            [str(BIN / "pyspark"), *driver_options(), *self._words],
            cwd=self._folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait(PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append((time.time(), line.rstrip("\n")))

    def run(self, code: str) -> None:
        """Type lines, and wait until they have been run; an error in them fails the test."""
        self._marks += 1
        mark = f"done {self._marks}"
        first = len(self._lines)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{code}\n\nprint({mark!r})\n")
        self._process.stdin.flush()

        def done() -> bool:
            assert self._process.poll() is None, self.text
            assert "Traceback" not in self._text(first), self._text(first)
            return any(line.endswith(mark) for _, line in self._lines[first:])

        wait_for(done, lambda: f"the end of {code}\n{self.text[-5000:]}")

    @property
    def text(self) -> str:
        """All that was printed so far."""
        return self._text(0)

    def _text(self, first: int) -> str:
        return "\n".join(line for _, line in self._lines[first:])

    def shown(self) -> list[Shown]:
        """Return the rows that the console sink has printed."""
        found: list[Shown] = []
        names: list[str] = []
        batch = -1
        for at_s, line in list(self._lines):
            if number := _BATCH.match(line):
                batch, names = int(number[1]), []
            elif line.startswith("|") and line.endswith("|"):
                cells = [cell.strip() for cell in line[1:-1].split("|")]
                if names:
                    found.append(Shown(batch, at_s, dict(zip(names, cells, strict=True))))
                names = names or cells
        return found
