"""CPU seconds of a process and of what it has started, by kind; for benchmarks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from support.processes import command_of

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_DEPTH_MAX: Final = 8


def cpu_s(root: int) -> dict[str, float]:
    """Count the CPU seconds of broker, JVM and workers below a process, its own, and everything on the machine.

    Args:
        root: the process.
    """
    mine = {root}
    spent: dict[int, float] = {}
    java: set[int] = set()
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        spent[pid] = (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
        if "(java)" in text:
            java.add(pid)
    for _ in range(_DEPTH_MAX):
        mine |= {pid for pid, parent in parents.items() if parent in mine}
    busy = sum(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:4])) / _TICKS_A_SECOND
    children = mine - {root}
    brokers = {pid for pid in children & java if "kafka.Kafka" in command_of(pid)}
    return {
        "broker": sum(spent.get(pid, 0.0) for pid in brokers),
        "JVM": sum(spent.get(pid, 0.0) for pid in children & java - brokers),
        "workers": sum(spent.get(pid, 0.0) for pid in children - java),
        "driver": spent.get(root, 0.0),
        "whole machine": busy,
    }
