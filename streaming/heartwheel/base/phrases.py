"""Numbers and times in plain words."""

from __future__ import annotations

from datetime import UTC, datetime

_SECOND_MS = 1_000
_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000
_DAY_MS = 86_400_000


def length(duration_ms: int) -> str:
    """Return a length of time in words, as a person wants it: `250 ms`, `7.0 s`, `12 min 30 s`, `3 h 5 min`."""
    if duration_ms < 0:
        return f"-{length(-duration_ms)}"
    if duration_ms < _SECOND_MS:
        return f"{duration_ms} ms"
    if duration_ms < _MINUTE_MS:
        return f"{duration_ms / _SECOND_MS:.1f} s"
    if duration_ms < _HOUR_MS:
        return _two(duration_ms, _MINUTE_MS, "min", _SECOND_MS, "s")
    if duration_ms < _DAY_MS:
        return _two(duration_ms, _HOUR_MS, "h", _MINUTE_MS, "min")
    return _two(duration_ms, _DAY_MS, "d", _HOUR_MS, "h")


def setting(duration_ms: int) -> str:
    """Return a length of time that is a setting, without digits that say nothing: `6 s`, `45 s`, `5 min`."""
    return length(duration_ms).replace(".0 s", " s")


def ago(since_ms: int, now_ms: int) -> str:
    """Return in words how long ago a moment is; clocks that disagree make it no time at all."""
    return length(max(0, now_ms - since_ms) // _SECOND_MS * _SECOND_MS).replace(".0 s", " s").replace("0 ms", "0 s")


def count(number: int, what: str) -> str:
    """Return a number of things in words: `1 trigger`, `12,345 triggers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def moment(time_ms: int) -> str:
    """Return a time in UTC, to the second: `2026-11-22 02:12:49`."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _two(duration_ms: int, big_ms: int, big: str, small_ms: int, small: str) -> str:
    bigs, rest = divmod(duration_ms, big_ms)
    return f"{bigs} {big} {rest // small_ms} {small}" if rest >= small_ms else f"{bigs} {big}"
