"""Check of a log's assumed time zone against the time at which the file was last written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from heartwheel.base.phrases import length
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.times import choose, stamps_in

_TAIL_BYTES: Final = 65_536
_LINES_MAX: Final = 50
_HEAD_BYTES: Final = 200
_HALF_HOUR_MS: Final = 1_800_000
_DAY_MS: Final = 86_400_000
_NEAR_MS: Final = 10_000
_AHEAD_MS: Final = 120_000


def zone_doubt(name: str, zone: LocalZone, *, now_ms: int) -> str:
    """Return why the times of a file are probably those of another zone; empty if nothing suggests that.

    Args:
        name: of the file; standard input and compressed files give no hint.
        zone: in which its times are assumed to be.
    """
    try:
        written_ms = int(Path(name).stat().st_mtime * 1000)
        with Path(name).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return ""
    last_ms = _last_ms(tail, zone, now_ms)
    if last_ms is None:
        return ""
    ahead_ms = last_ms - written_ms
    steps = round(ahead_ms / _HALF_HOUR_MS)
    is_zone = steps != 0 and abs(ahead_ms) < _DAY_MS and abs(ahead_ms - steps * _HALF_HOUR_MS) <= _NEAR_MS
    if is_zone:
        side = "ahead of" if ahead_ms > 0 else "behind"
        off = f"{name} ends {length(abs(steps) * _HALF_HOUR_MS)} {side} the time at which it was written"
        return f"{off}, so its times are probably in another zone: --utc-offset {_offset(steps)}, or a zone's name"
    if last_ms > now_ms + _AHEAD_MS:
        off = f"{name} ends {length(last_ms - now_ms)} in the future"
        return f"{off}, so its times are in another zone: --utc-offset +HH:MM, or a zone's name"
    return ""


def _last_ms(tail: bytes, zone: LocalZone, now_ms: int) -> int | None:
    """Return the time of the last line that has one; `None` if it names its zone."""
    for line in reversed(tail.split(b"\n")[-_LINES_MAX:]):
        stamps = stamps_in(line[:_HEAD_BYTES].decode("utf-8", "replace"))
        if any(stamp.zoned for stamp in stamps):
            return None
        timed = choose(stamps, zone, now_ms=now_ms)
        if timed is not None:
            return timed[0]
    return None


def _offset(steps: int) -> str:
    return f"{'-' if steps < 0 else '+'}{abs(steps) // 2:02}:{abs(steps) % 2 * 30:02}"
