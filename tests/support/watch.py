"""Watch a running job from outside: memory by process, checkpoint, state, batches, and the heap that is in use."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from heartwheel.engine.runtime.map import daemon
from heartwheel.kafka.readback import read_topic
from support.job import Job, Topics
from support.processes import command_of, descendants_of

_MIB: Final = 2**20

HEAP: Final = "heap in use"
JVM: Final = "JVM resident"
WORKERS: Final = "Python workers resident"
DRIVER: Final = "driver's Python resident"
CHECKPOINT: Final = "checkpoint"
FILES: Final = "checkpoint files"
STATE: Final = "state"
BATCH: Final = "batch"
NAMES: Final = (HEAP, JVM, WORKERS, DRIVER, CHECKPOINT, FILES, STATE, BATCH)
"""The series: MiB all, but the files, which are counted, and the batches, in ms."""


def heap_options(size_mib: int, gc_log: Path) -> str:
    """Give the JVM's options for a heap of one size from its start, with a log of its collections.

    What is left after a young collection is mostly garbage that nobody has looked at yet; only a full one tells what is
    in use, and Spark asks for one at every `spark.cleaner.periodicGC.interval`.

    Args:
        size_mib: its size, which `spark.driver_memory` must give too, MiB.
        gc_log: where collections are logged.
    """
    return f"-Xms{size_mib}m -XX:+AlwaysPreTouch -Xlog:gc:file={gc_log}:uptime"


class Samples:
    """Collect `(seconds, value)` by series.

    Args:
        job: the running job.
        gc_log: where its JVM logs collections.
    """

    def __init__(self, job: Job, checkpoint: Path, gc_log: Path) -> None:
        self._job = job
        self._checkpoint = checkpoint
        self._gc_log = gc_log
        self._started_s = time.monotonic()
        self._started_ms = time.time() * 1000
        self._lines = 0
        self.values: dict[str, list[tuple[float, float]]] = {name: [] for name in NAMES}

    def take(self) -> None:
        """Take one sample of everything that can be seen from outside."""
        jvm = workers = 0.0
        for pid in descendants_of(self._job.pid):
            command = command_of(pid)
            # The largest: a process that the JVM forks is its double for a moment.
            jvm = max(jvm, _resident_mib(pid)) if "java" in command.partition(" ")[0] else jvm
            workers += _resident_mib(pid) if f"-m {daemon.__name__}" in command else 0
        self._add(JVM, jvm)
        self._add(WORKERS, workers)
        self._add(DRIVER, _resident_mib(self._job.pid))
        sizes = list(_sizes(self._checkpoint))
        self._add(CHECKPOINT, sum(sizes) / _MIB)
        self._add(FILES, len(sizes))
        lines = self._job.log.splitlines()
        for line in lines[self._lines :]:
            if " live" not in line and (found := re.search(r"batch \d+, .* in ([\d.]+) s$", line)):
                self._add(BATCH, float(found[1]) * 1000)
        self._lines = len(lines)

    def finish(self, topics: Topics) -> None:
        """Add what has been written down meanwhile: collections of the JVM, and the state's size by the status rows."""
        pattern = re.compile(r"^\[([\d.]+)s\].* Pause Full .*->(\d+)M\(")
        for line in self._gc_log.read_text().splitlines():
            if found := pattern.match(line):
                self.values[HEAP].append((float(found[1]), float(found[2])))
        state: dict[int, int] = {}
        for record in read_topic(topics.bootstrap, topics.names["status"]):
            if record.value:
                row = json.loads(record.value)
                state[row["batch_ms"]] = state.get(row["batch_ms"], 0) + row["state_bytes"]
        for batch_ms, size in sorted(state.items()):
            self.values[STATE].append(((batch_ms - self._started_ms) / 1000, size / _MIB))

    def _add(self, name: str, value: float) -> None:
        self.values[name].append((time.monotonic() - self._started_s, value))


def _resident_mib(pid: int) -> float:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / _MIB
    return 0.0


def _sizes(folder: Path) -> Iterator[int]:
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError):  # Spark removes old files meanwhile
            if file.is_file():
                yield file.stat().st_size
