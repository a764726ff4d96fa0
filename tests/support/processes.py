"""Processes as the kernel lists them: who started whom, with which command."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def command_of(pid: int) -> str:
    """Give a process's command line; empty if it is gone."""
    with contextlib.suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def children_of(pid: int) -> list[int]:
    """List the processes that a process started and that live, oldest first."""
    return sorted(child for child, parent in _parents() if parent == pid)


def descendants_of(pid: int) -> list[int]:
    """List the processes below a process, parents before children."""
    found = children_of(pid)
    for child in found:
        found += children_of(child)
    return found


def memory_mib(pid: int) -> tuple[int, int]:
    """Tell the resident memory of a process, now and at most so far, MiB."""
    found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", (_PROC / str(pid) / "status").read_text()))
    return int(found["VmRSS"]) >> 10, int(found["VmHWM"]) >> 10


def cpu_of(pid: int) -> float:
    """Tell how much of a core a process has used, s."""
    fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The command's name stands in parentheses and may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    yield int(entry.name), int(fields[1])
