"""The arguments of `sessions`, checked: all errors at once, each with the argument's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.engine.sessions.config import BYTES_MAX, DURATION_MAX_MS, EVENTS, SessionsConfig, bytes_of_shard
from heartwheel.settings.units import parse_duration_ms

RESERVED: Final = (
    "event", "at", "first_seen", "last_seen", "deadline", "silent_for", "times", "reason", "id",
)  # fmt: skip
"""The columns of the output besides the key and what is carried."""

Duration = str | timedelta

_WORDS: Final = {
    "millisecond": "ms", "second": "s", "sec": "s", "minute": "m", "min": "m", "hour": "h", "day": "d",
}  # fmt: skip


class SessionsArgumentError(HeartwheelError, ValueError):
    """Arguments of `sessions` are wrong."""


def duration_ms(value: Duration) -> int:
    """Return a duration in ms.

    Args:
        value: such as `30 seconds`, `1.5 minutes`, `500ms`, or a timedelta.

    Raises:
        ValueError: it is no duration, or not a whole number of ms.
    """
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    if not isinstance(value, str):
        raise ValueError(f'{value!r} is no duration; write "30 seconds" or a timedelta')  # noqa: TRY004 - one kind
    found = re.fullmatch(r"\s*([\d.]+)\s+([a-z]+?)s?\s*", value.lower())
    short = f"{found[1]}{_WORDS[found[2]]}" if found and found[2] in _WORDS else value
    try:
        return parse_duration_ms(short)
    except ValueError as error:
        raise ValueError(f'{value!r} {error}, or "30 seconds"') from None


class Checks:
    """Collects what is wrong with arguments."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def add(self, argument: str, what: str) -> None:
        """Add an error."""
        self.errors.append(f"{argument}: {what}")

    def duration(self, argument: str, value: Duration, *, least_ms: int = 0) -> int:
        """Return a duration in ms; a wrong one is added to the errors."""
        try:
            ms = duration_ms(value)
        except ValueError as error:
            self.add(argument, str(error))
            return least_ms
        if ms < least_ms:
            self.add(argument, f"{value!r} is too short, at least {least_ms} ms")
        if ms > DURATION_MAX_MS:
            self.add(argument, f"{value!r} is too long, at most {DURATION_MAX_MS // 86_400_000} days")
        return min(max(ms, least_ms), DURATION_MAX_MS)

    def end(self) -> None:
        """Raise what was collected.

        Raises:
            SessionsArgumentError: something was.
        """
        if self.errors:
            raise SessionsArgumentError("; ".join(self.errors), hint="sessions.describe(...) tells what is assumed")


class Options(NamedTuple):
    """The arguments of `sessions` that are the same with and without Spark; `Sessions.__call__` says what they are."""

    key: Any
    timeout: Any
    time: Any
    ends: Any
    carry: Sequence[str]
    emit: Iterable[str]
    idle: Duration
    wait: Duration
    outage: Duration | None
    ahead: Duration
    forget: Duration
    shards: int | None
    keys_max: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns."""
        return tuple(self.key) if isinstance(self.key, list | tuple) else (self.key,)

    def constant_timeout(self, columns: Iterable[str]) -> str | timedelta | None:
        """Return the timeout of all keys; `None` if it is a column."""
        if isinstance(self.timeout, timedelta):
            return self.timeout
        return self.timeout if isinstance(self.timeout, str) and self.timeout not in columns else None


def checked(
    options: Options, columns: dict[str, str], *, shards: int, whole: bool, checks: Checks, heap: str | None = None
) -> SessionsConfig:
    """Return the configuration that arguments ask for; what is wrong with them is added to `checks`.

    Args:
        options: the arguments.
        columns: the type of each column of the rows, by its name.
        shards: how many there are if the arguments do not say it.
        whole: whether all rows are there at once.
        checks: collects the errors.
        heap: of the JVM that has the state; `None` if none has.
    """
    named = _names_are_text(options, checks)
    if named:
        _check_names(options, columns, checks)
    timeout = options.constant_timeout(columns)
    emit = tuple(options.emit) if isinstance(options.emit, Iterable) and not isinstance(options.emit, str) else ()
    if not emit or not all(event in EVENTS for event in emit):
        checks.add("emit", f"{options.emit!r}, but it takes a list of some of {EVENTS}")
        emit = EVENTS
    count = shards if options.shards is None else options.shards
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 4096:
        checks.add("shards", f"{count!r} is not a number from 1 to 4096")
        count = 1
    keys_max = options.keys_max
    if not isinstance(keys_max, int) or isinstance(keys_max, bool) or keys_max < 1:
        checks.add("keys_max", f"{keys_max!r} is not a positive number")
        keys_max = count
    return SessionsConfig(
        slots=slots_of(count, count),
        shape=_shape(options, columns, constant=timeout is not None) if named else "",
        keys=len(options.keys),
        carry=len(options.carry) if named else 0,
        event_time=options.time is not None,
        timeout_ms=None if timeout is None else checks.duration("timeout", timeout, least_ms=1),
        whole=whole,
        wait_ms=checks.duration("wait", options.wait),
        idle_ms=checks.duration("idle", options.idle, least_ms=1),
        outage_ms=None if options.outage is None else checks.duration("outage", options.outage, least_ms=1),
        forget_ms=checks.duration("forget", options.forget, least_ms=1),
        emit=frozenset(emit),
        keys_max=max(1, keys_max // count),
        bytes_max=BYTES_MAX if heap is None else bytes_of_shard(heap, count),
    )


def _names_are_text(options: Options, checks: Checks) -> bool:
    before = len(checks.errors)
    for argument, names in (("key", options.keys), ("carry", options.carry)):
        if not isinstance(names, list | tuple):
            checks.add(argument, f"{names!r} is no list; give a list of names of columns")
        elif not all(isinstance(name, str) for name in names):
            checks.add(argument, f"{names!r} has what is no name; make a column first, with withColumn, and name it")
    return len(checks.errors) == before


def _check_names(options: Options, columns: dict[str, str], checks: Checks) -> None:
    if not options.keys:
        checks.add("key", "there is none")
    for argument, names in (("key", options.keys), ("carry", options.carry)):
        for name in names:
            if name not in columns:
                checks.add(argument, f"there is no column {name!r}; there are {', '.join(columns)}")
            if name.lower() in RESERVED:
                checks.add(argument, f"{name!r} is a column of the output; rename it with withColumnRenamed")
    twice = sorted(set(options.keys) & set(options.carry))
    if twice or len(set(options.keys)) < len(options.keys) or len(set(options.carry)) < len(options.carry):
        checks.add("key and carry", f"a column is named twice: {[*options.keys, *options.carry]}")
    _check_types(options, columns, checks)


def _check_types(options: Options, columns: dict[str, str], checks: Checks) -> None:
    for name in options.keys:
        kind = columns.get(name, "string")
        if _NO_KEY.match(kind):
            checks.add("key", f"column {name!r} is {kind}; {MAKE_KEY}")
    for name in options.carry:
        if _NOT_CARRIED.search(kind := columns.get(name, "string")):
            checks.add("carry", f"column {name!r} is {kind}, which cannot be carried; carry its text or its JSON")


# Spark has no hash of a map or a variant, and Arrow no type for the others.
_NOT_CARRIED: Final = re.compile(r"(?:^|[<,:])(?:map<|(?:variant|void|interval(?: year[^,>]*| month)?)(?:$|[,>]))")
MAKE_KEY: Final = (
    "a key is a number, a string that is compared by its bytes, bytes, a date or a time; "
    "make one with withColumn, such as F.to_json of a struct, or F.collate(..., 'UTF8_BINARY')"
)
_NO_KEY: Final = re.compile(f"array|struct|{_NOT_CARRIED.pattern}|.* collate ")


def _shape(options: Options, columns: dict[str, str], *, constant: bool) -> str:
    parts = [f"{name} {columns.get(name, '')}" for name in options.keys]
    parts += [] if options.time is None else ["time of each row"]
    parts += [] if constant else ["timeout of each row"]
    parts += [] if options.ends is None else ["ends"]
    parts += [f"{name} {columns.get(name, '')}" for name in options.carry]
    return ", ".join(parts)
