"""The time zone of log times that name none."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

from heartwheel.sources.explain.times import parse_utc_offset_ms

_QUARTER_MS: Final = 900_000
_HOUR_MS: Final = 3_600_000
_OFFSETS_MAX: Final = 100_000


class LocalZone:
    """Converts local times to UTC.

    Args:
        is_assumed: whether the zone was assumed, not named.
    """

    def __init__(self, zone: tzinfo = UTC, *, is_assumed: bool = True) -> None:
        self.is_assumed = is_assumed
        self.used = 0
        """How many times were converted to UTC."""
        self._zone = zone
        self._fixed_ms = _offset_ms(zone, 0) if isinstance(zone, timezone) else None
        self._offsets: dict[tuple[int, int], int] = {}
        self._newest_ms = 0

    def utc_ms(self, local_ms: int) -> int:
        """Return a local time, epoch ms as if it were UTC, as UTC.

        Where clocks are set back, an hour comes twice: a time belongs to the second one if earlier lines do.
        """
        self.used += 1
        if self._fixed_ms is not None:
            return local_ms - self._fixed_ms
        first_ms = local_ms - self._offset_at(local_ms, 0)
        if first_ms < self._newest_ms <= first_ms + _HOUR_MS:
            second_ms = local_ms - self._offset_at(local_ms, 1)
            first_ms = second_ms if second_ms >= self._newest_ms else first_ms
        self._newest_ms = first_ms
        return first_ms

    def moment_ms(self, moment: datetime) -> int:
        """Return a moment as epoch ms; one that names no zone is a local time."""
        if moment.tzinfo is not None:
            return round(moment.timestamp() * 1000)
        return self.utc_ms(round(moment.replace(tzinfo=UTC).timestamp() * 1000))

    def _offset_at(self, local_ms: int, fold: int) -> int:
        """Return the offset at a local time, ms; zones change theirs only at quarters of an hour."""
        key = local_ms // _QUARTER_MS, fold
        found = self._offsets.get(key)
        if found is None:
            if len(self._offsets) >= _OFFSETS_MAX:
                self._offsets.clear()
            found = self._offsets[key] = _offset_ms(self._zone, local_ms, fold)
        return found


def parse_zone(text: str) -> LocalZone:
    """Return the zone of an offset such as `+01:00` or of a name such as `Europe/Berlin`.

    Raises:
        ValueError: it is neither.
    """
    try:
        return LocalZone(timezone(timedelta(milliseconds=parse_utc_offset_ms(text))), is_assumed=False)
    except ValueError:
        pass
    try:
        return LocalZone(zoneinfo.ZoneInfo(text), is_assumed=False)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        words = f"{text!r} is no offset such as +01:00 and no time zone that this machine knows, such as Europe/Berlin"
        raise ValueError(words) from None


def _offset_ms(zone: tzinfo, local_ms: int, fold: int = 0) -> int:
    local = datetime.fromtimestamp(local_ms / 1000, UTC).replace(tzinfo=zone, fold=fold)
    offset = local.utcoffset()
    return 0 if offset is None else round(offset.total_seconds() * 1000)
