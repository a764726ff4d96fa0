"""How much memory the process of the tests has taken, and which file made it too much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

MEMORY_MIB_MAX: Final = 2 << 10
"""The most that one process of tests may take: two of them, two brokers and two jobs fit into 8 GiB."""


def peak_mib() -> int:
    """Return the most memory that this process has ever had at once, MiB.

    `resource.getrusage` would begin with the peak of the process that started this one.
    """
    (kib,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(kib) >> 10


def excess(before_mib: int, after_mib: int, most_mib: int = MEMORY_MIB_MAX) -> str:
    """Return what to say of a file during which a process grew beyond its bound; empty if it did not.

    The peak of a process never falls, so it is only the file by which it crosses the bound.
    """
    if before_mib <= most_mib < after_mib:
        return f"the process has grown from {before_mib} to {after_mib} MiB; at most {most_mib} MiB are allowed"
    return ""
