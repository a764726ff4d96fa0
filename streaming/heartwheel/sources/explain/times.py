"""Times as log layouts write them: found in a text, and converted to epoch milliseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol

import msgspec

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}

_DATED: Final = re.compile(
    r"(?<!\d)(?P<year>\d{4})(?P<sep>[-/.]?)(?P<month>\d\d)(?P=sep)(?P<day>\d\d)[T _]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,:](?P<fraction>\d{1,9}))?(?!\d)(?:\s?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d(?::?\d\d)?(?!\d)))?"
)
_NAMED: Final = re.compile(
    r"(?<!\d)(?P<day>\d{1,2})[ /-](?P<name>[A-Z][a-z]{2})[ /-](?P<year>\d{4})[ :T]"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?!\d)(?:\s?(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d))?"
)
_COMPACT: Final = re.compile(
    r"(?<!\d)(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d)T?(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)"
    r"(?:[.,]?(?P<fraction>\d{3}))?(?!\d)(?P<zone>Z\b|[+-]\d\d:?\d\d)?"
)
_SYSLOG: Final = re.compile(
    r"(?<![A-Za-z])(?P<name>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?:(?P<year>\d{4}) )?"
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?!\d)"
)
_MOMENT: Final = re.compile(r"(\D{0,60}\d{4}-\d\d-\d\d[T _]\d\d:\d\d:)(\d\d)[.,](\d{3})(\D{0,60})")
"""A text with one time of the usual form: up to its minute, its second, its milliseconds, and what follows."""

_EPOCH: Final = re.compile(r"(?<![\d.:-])(?P<whole>[12]\d{9})(?P<milli>\d{3})?(?:\.(?P<fraction>\d{1,9}))?(?![\d:-])")

_LATEST_MS: Final = 7_258_118_400_000  # the year 2200
_QUARTER_MS: Final = 900_000
_AGREE_MS: Final = 2_000


class LoggedTime(msgspec.Struct, frozen=True, gc=False):
    """A time as it was found.

    Args:
        time_ms: epoch ms; for a time without a zone, as if it were UTC.
        zoned: whether it names its zone.
        coarse: whether it has no fraction of a second.
        at: where in the text it begins.
    """

    time_ms: int
    zoned: bool
    coarse: bool
    at: int
    year_known: bool = True


class Zone(Protocol):
    """The zone of times that name none."""

    def utc_ms(self, local_ms: int) -> int:
        """Return a local time, epoch ms as if it were UTC, as UTC."""
        ...


def stamps_in(text: str) -> tuple[LoggedTime, ...]:
    """Return the times in a text, in their order; a bare epoch number or a syslog time only if there is no other."""
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        return _stamps_in(text)
    begin, second, milli, end = moment.groups()
    minute = _stamps_in(f"{begin}00,000{end}")
    if not minute:
        return ()
    (only,) = minute
    return (LoggedTime(only.time_ms + min(int(second), 59) * 1_000 + int(milli), only.zoned, False, only.at),)


@lru_cache(maxsize=16)
def _stamps_in(text: str) -> tuple[LoggedTime, ...]:
    """Find the times in a text; lines of one minute follow one another, so the newest texts are remembered."""
    found = (
        _found((_DATED, _NAMED), text) or _found((_COMPACT, _SYSLOG), text) or list(map(_epoch, _EPOCH.finditer(text)))
    )
    return tuple(sorted(found, key=lambda stamp: stamp.at) if len(found) > 1 else found)


def choose(stamps: Sequence[LoggedTime], zone: Zone, *, now_ms: int) -> tuple[int, bool] | None:
    """Choose the time of a line.

    The first time with a zone counts, because it is from the carrier of the line (CRI, Docker, CloudWatch). Otherwise
    the last one counts, because it is the layout's own, which has milliseconds where that of a journal has seconds.

    Args:
        stamps: the times before the message, in their order.
        zone: the zone of times that name none.
        now_ms: epoch ms, to guess the year that a syslog time leaves out.

    Returns:
        Epoch ms, and whether it has no fraction of a second; `None` if there is no time.
    """
    if not stamps:
        return None
    for stamp in stamps:
        if stamp.zoned:
            return _refined(stamp, stamps) if stamp.coarse else (stamp.time_ms, False)
    inner = stamps[-1]
    if len(stamps) > 1:
        known = [stamp for stamp in stamps if stamp.year_known] or stamps
        inner = known[-1]
        if inner.coarse:
            inner = next((stamp for stamp in known if not stamp.coarse), inner)
    time_ms = inner.time_ms if inner.year_known else _with_year(inner.time_ms, now_ms)
    return (zone.utc_ms(time_ms), inner.coarse) if usable(time_ms) else None


def usable(time_ms: int) -> bool:
    """Return whether a time, epoch ms, is in the years 1970 to 2199; any other one is no time of a log."""
    return 0 <= time_ms < _LATEST_MS


def number_ms(value: float) -> int | None:
    """Return a number as a time, by its size: seconds, milli-, micro- or nanoseconds; `None` if it can be none."""
    if not 0 < value < 1e20:
        return None  # also a number too large for a float
    for scale in (1_000, 1, 1e-3, 1e-6):
        time_ms = value * scale
        if 946_684_800_000 <= time_ms <= _LATEST_MS:  # from the year 2000 on
            return int(time_ms)
    return None


def parse_utc_offset_ms(text: str) -> int:
    """Parse an offset such as `+01:00`, `-0330`, `+2` or `Z`, in ms.

    Raises:
        ValueError: it is none.
    """
    if text in {"Z", "UTC", "z"}:
        return 0
    match = re.fullmatch(r"([+-]?)(\d{1,2})(?::?(\d\d))?", text)
    if match is None or int(match[2]) > 18 or int(match[3] or 0) > 59:
        raise ValueError(f"{text!r} is no offset from UTC such as +01:00")
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return (-minutes if match[1] == "-" else minutes) * 60_000


def _refined(outer: LoggedTime, stamps: Sequence[LoggedTime]) -> tuple[int, bool]:
    """Return a zoned time without milliseconds refined by the layout's own time, if the two agree."""
    for inner in stamps:
        if inner is outer or inner.coarse or not inner.year_known:
            continue
        ahead_ms = 0 if inner.zoned else round((inner.time_ms - outer.time_ms) / _QUARTER_MS) * _QUARTER_MS
        if abs(inner.time_ms - ahead_ms - outer.time_ms) <= _AGREE_MS:
            return inner.time_ms - ahead_ms, False
    return outer.time_ms, True


def _with_year(time_ms: int, now_ms: int) -> int:
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    bare = datetime.fromtimestamp(time_ms / 1000, UTC)
    guess = _replace_year(bare, now.year)
    if guess > now + timedelta(days=1):
        guess = _replace_year(bare, now.year - 1)
    return _ms(guess)


def _replace_year(moment: datetime, year: int) -> datetime:
    try:
        return moment.replace(year=year)
    except ValueError:  # 29 February
        return moment.replace(year=year, day=28)


def _found(patterns: tuple[re.Pattern[str], ...], text: str) -> list[LoggedTime]:
    return [stamp for pattern in patterns for match in pattern.finditer(text) if (stamp := _of(match)) is not None]


def _of(match: re.Match[str]) -> LoggedTime | None:
    parts = match.groupdict()
    year, fraction, zone = parts["year"], parts["fraction"], parts.get("zone")
    day_ms = _day_ms(year, parts.get("name") or parts["month"], parts["day"])
    hour, minute = int(parts["hour"]), int(parts["minute"])
    if day_ms is None or hour > 23 or minute > 59:
        return None
    time_ms = day_ms + ((hour * 60 + minute) * 60 + min(int(parts["second"]), 59)) * 1_000
    if zone:
        try:
            time_ms -= parse_utc_offset_ms("Z" if zone == "GMT" else zone)
        except ValueError:
            return None
    time_ms += int(fraction.ljust(3, "0")[:3]) if fraction else 0
    return LoggedTime(time_ms, bool(zone), fraction is None, match.start(), year is not None)


@lru_cache(maxsize=1_024)
def _day_ms(year: str | None, month: str, day: str) -> int | None:
    """Return the start of a day, epoch ms, as if it were UTC; `None` if there is no such day."""
    number = int(month) if month.isdecimal() else _MONTHS.get(month.lower())
    try:
        # 2000 is a leap year, so that every day fits in a time without a year.
        return None if number is None else _ms(datetime(int(year or 2000), number, int(day), tzinfo=UTC))
    except ValueError:
        return None


def _epoch(match: re.Match[str]) -> LoggedTime:
    milli, fraction = match["milli"], match["fraction"]
    time_ms = int(match["whole"]) * 1_000
    time_ms += int(milli) if milli else int(fraction.ljust(3, "0")[:3]) if fraction else 0
    return LoggedTime(time_ms, zoned=True, coarse=milli is None and fraction is None, at=match.start())


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000
