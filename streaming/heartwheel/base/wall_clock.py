"""The wall clock of this machine, and times as people read them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime


def wall_ms() -> int:
    """Return the time, epoch ms."""
    return time.time_ns() // 1_000_000


def time_of_day(at_ms: int) -> str:
    """Return a time of day in the local zone, such as `14:03:07`; of a time that no calendar has, its number."""
    return _written(at_ms, lambda moment: moment.astimezone().strftime("%H:%M:%S"))


def moment_words(at_ms: int) -> str:
    """Return a date and time with milliseconds in the local zone; of a time that no calendar has, its number."""
    return _written(at_ms, lambda moment: moment.astimezone().isoformat(" ", "milliseconds"))


def utc_day(at_ms: int) -> str:
    """Return a date, UTC, such as `2026-11-22`; of a time that no calendar has, its number."""
    return _written(at_ms, lambda moment: f"{moment:%Y-%m-%d}")


def _written(at_ms: int, write: Callable[[datetime], str]) -> str:
    try:
        return write(datetime.fromtimestamp(at_ms / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"  # rows hold whatever time their producer gave them
