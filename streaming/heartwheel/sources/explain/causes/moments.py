"""Times of files beside the logs."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from heartwheel.sources.explain.local_zone import LocalZone

_LATEST_MS: Final = 4_102_444_800_000


def moment_ms(text: str, zone: LocalZone) -> int:
    """Return a time in ISO 8601 as epoch ms; one that names no zone is of the given one.

    Raises:
        ValueError: it is none, or of another century.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip()[:40]!r} is no time such as 2026-11-22T02:12:51") from None
    time_ms = zone.moment_ms(moment)
    if not 0 < time_ms < _LATEST_MS:
        raise ValueError(f"{text.strip()[:40]} is not a time of our days")
    return time_ms
