"""The times that people ask about: a moment, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from heartwheel.base.wall_clock import wall_ms
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.times import number_ms

_AGO: Final = re.compile(r"^(\d{1,15})(s|m|min|h|d)$")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def asked_time_ms(text: str, zone: LocalZone) -> int:
    """Return the time that a text names, epoch ms.

    Args:
        text: such as `2026-11-22T02:12`, `15m` or `15m ago`, or seconds or milliseconds since 1970.
        zone: that of a time that names none.

    Raises:
        ValueError: it is no time.
    """
    ago = _AGO.match(text.removesuffix(" ago"))
    if ago is not None:
        return max(0, wall_ms() - int(ago[1]) * _UNIT_MS[ago[2]])
    if text.isdecimal() and (whole_ms := number_ms(int(text))) is not None:
        return whole_ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text} is no time such as 2026-11-22T02:12 or 15m") from None
    return zone.moment_ms(moment)
