"""The wall clock of this machine."""

from __future__ import annotations

import time


def wall_ms() -> int:
    """Return the time, epoch ms."""
    return time.time_ns() // 1_000_000
