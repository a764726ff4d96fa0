"""Human units at the edge: durations such as `45s` and sizes such as `64MiB`, integers of ms and bytes inside."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

MS_PER_UNIT: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds in each unit of a duration."""

BYTES_PER_UNIT: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
"""Bytes in each unit of a size: decimal and binary ones, as their symbols are defined."""

_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)")
_SIZE_UNITS: Final = {symbol.lower(): size for symbol, size in BYTES_PER_UNIT.items()}


def parse_duration_ms(value: object) -> int:
    """Read a duration such as `500ms`, `45s`, `1.5m`; a bare integer counts milliseconds.

    Returns:
        The duration in milliseconds.

    Raises:
        ValueError: if it is no duration, or no whole number of milliseconds.
    """
    if isinstance(value, str) and value.strip().isdecimal():
        raise ValueError(f"must be a duration with its unit; hint: {unit_hint(value.strip())}")
    return _parse(value, MS_PER_UNIT, 'a duration such as "500ms", "45s", "10m"')


def unit_hint(number: str) -> str:
    """Return how to write a number as a duration: who leaves the unit out mostly means seconds."""
    return f"write {number}s for seconds"


def parse_size_bytes(value: object) -> int:
    """Read a size such as `64MB` or `1MiB` (upper and lower case alike); a bare integer counts bytes.

    Returns:
        The size in bytes.

    Raises:
        ValueError: if it is no size, or no whole number of bytes.
    """
    if isinstance(value, str):
        value = re.sub(r"[A-Za-z]+$", lambda unit: unit[0].lower(), value.strip())
    return _parse(value, _SIZE_UNITS, 'a size such as "64MB", "1MiB", or a whole number of bytes')


def _parse(value: object, units: dict[str, int], wanted: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        raise ValueError(f"must be {wanted}")
    # Decimal, not float: "0.1s" is 100 ms exactly, and "0.0001s" must differ from 0.
    amount = Decimal(match[1]) * units[match[2]]
    if amount != int(amount):
        raise ValueError(f"must be {wanted}, and is a fraction of the smallest unit")
    return int(amount)


def format_duration(duration_ms: int) -> str:
    """Write a duration in the largest unit that divides it, so that `parse_duration_ms` reads it back."""
    return _format(duration_ms, MS_PER_UNIT)


def format_size(size_bytes: int) -> str:
    """Write a size in the largest unit that divides it, so that `parse_size_bytes` reads it back."""
    return _format(size_bytes, BYTES_PER_UNIT)


def _format(amount: int, units: dict[str, int]) -> str:
    fitting = [(size, unit) for unit, size in units.items() if amount % size == 0]
    size, unit = max(fitting) if amount else min(fitting)
    return f"{amount // size}{unit}"


def _parse_auto(value: object) -> object:
    return None if value == "auto" else value


DurationMs = Annotated[int, BeforeValidator(parse_duration_ms), PlainSerializer(format_duration, when_used="json")]
"""A field that is written as a duration and stored as an integer of milliseconds."""

SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), PlainSerializer(format_size, when_used="json")]
"""A field that is written as a size and stored as an integer of bytes."""

AutoPartitions = Annotated[
    Annotated[int, Field(ge=1, le=1024)] | None,
    BeforeValidator(_parse_auto),
    PlainSerializer(lambda value: "auto" if value is None else value, when_used="json"),
]
"""A field that is written as a number of partitions or `auto`, and stored as an integer or `None`."""

KafkaVersion = Annotated[Literal["4.3", "4.4"], BeforeValidator(str)]
"""A version of Kafka whose rules differ; also written without quotation marks, which TOML reads as a number."""
