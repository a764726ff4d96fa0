"""The memory of the job: the driver, its JVM, and the workers that the JVM starts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.metrics.catalogue import job as about_job
from heartwheel.readers.metrics.families import family

_PROC: Final = Path("/proc")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class _Process(NamedTuple):
    pid: int
    parent: int
    name: str
    resident_bytes: int


class MemoryCollector(Collector):
    """The memory of a process and its children when Prometheus asks; nothing where there is no /proc.

    Args:
        pid: the process; this one by default.
    """

    def __init__(self, pid: int | None = None, *, proc: Path = _PROC) -> None:
        self._pid, self._proc = pid or os.getpid(), proc

    def collect(self) -> Iterable[Family]:
        """Return the figures for `prometheus_client`."""
        parts: Counter[str] = Counter()
        for process in _family_of(self._pid, list(_processes(self._proc))):
            parts[_part_of(process, self._pid)] += process.resident_bytes
        yield family(about_job.MEMORY, parts)


def _part_of(process: _Process, driver: int) -> str:
    if process.pid == driver:
        return "driver"
    return "jvm" if process.name == "java" else "workers"


def _family_of(pid: int, processes: list[_Process]) -> Iterator[_Process]:
    yield from (process for process in processes if process.pid == pid)
    children = [process.pid for process in processes if process.parent == pid]
    for child in children:
        yield from _family_of(child, processes)


def _processes(proc: Path) -> Iterator[_Process]:
    for folder in proc.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        # The name is in brackets and may contain any character; the rest is numbers.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        yield _Process(int(folder.name), int(fields[1]), name, int(fields[21]) * _PAGE_BYTES)
