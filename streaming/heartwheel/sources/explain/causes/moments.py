"""Times of files beside the logs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from heartwheel.sources.explain.local_zone import LocalZone

_LATEST_MS: Final = 4_102_444_800_000


def moment_ms(text: str, zone: LocalZone) -> int:
    """Return a time in ISO 8601 as epoch ms; one that names no zone is of the given one.

    Raises:
        ValueError: it is none, or of another century.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        time_ms = zone.utc_ms(round(moment.replace(tzinfo=UTC).timestamp() * 1000))
    else:
        time_ms = round(moment.timestamp() * 1000)
    if not 0 < time_ms < _LATEST_MS:
        raise ValueError(f"{text.strip()[:40]} is not a time of our days")
    return time_ms
