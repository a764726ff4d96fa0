"""`sessions.test`: the packer and the shards on a list."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from heartwheel.engine.runtime.state.schema import NEW_STATE
from heartwheel.engine.sessions.advance import advance_sessions
from heartwheel.engine.sessions.arguments import (
    MAKE_KEY,
    RESERVED,
    Checks,
    Options,
    SessionsArgumentError,
    checked,
    duration_ms,
)
from heartwheel.engine.sessions.clock import NO_TIME
from heartwheel.engine.sessions.config import DURATION_MAX_MS, SessionsConfig
from heartwheel.engine.sessions.packer import UNTIMED_MS, RowKind, decode_rows, pack_frame, stamps

Row = Mapping[str, Any]

_STEP_MS = 1_000
_STEP_FACTOR = 3


def tested(
    rows: Sequence[Row] | Sequence[tuple[datetime, Sequence[Row]]],
    options: Options,
    *,
    partition: str | None,
    until: datetime | timedelta | None,
) -> list[dict[str, Any]]:
    """Return the rows that `sessions` makes of a list; the arguments are those of `Sessions.test`."""
    batches = _batches(rows, options)
    every = [row for _, batch in batches for row in batch]
    columns = {name: "string" for row in every for name in row}
    checks = Checks()
    if options.constant_timeout(columns) is None and options.timeout not in columns:
        checks.add("timeout", f"{options.timeout!r} is neither a duration nor the name of a column")
    _check_columns(options, every, columns, checks)
    config = checked(options, columns, shards=1, whole=False, checks=checks)
    ahead_ms = checks.duration("ahead", options.ahead)
    checks.end()
    prepare = _Preparation(options, config, partition, ahead_ms, every)
    states, found = dict.fromkeys(range(config.shards), NEW_STATE), []
    for batch_ms, batch in _until(batches, until):
        packed = list(pack_frame(prepare.frame(batch, batch_ms), config.shards, config.outage_ms)) if batch else []
        for shard, state in states.items():
            mine = [(kind, payload) for owner, kind, payload in packed if owner == shard]
            frame = pd.DataFrame(mine, columns=["kind", "payload"])
            states[shard], output = advance_sessions(config, shard, state, [frame], batch_ms=batch_ms)
            if output.rows is not None:
                found.append(decode_rows(output.rows))
    names = [*options.keys, *RESERVED[:-1], *options.carry, RESERVED[-1]]
    listed = [dict(zip(names, row.values(), strict=True)) for each in found for row in each.to_pylist()]
    return sorted(listed, key=lambda row: (row["at"], *(str(row[name]) for name in options.keys)))


def _check_columns(options: Options, rows: Sequence[Row], columns: Container[str], checks: Checks) -> None:
    for argument, name in (("time", options.time), ("ends", options.ends)):
        if rows and isinstance(name, str) and name not in columns:
            checks.add(argument, f"no row has {name!r}")
    for name in options.keys:
        if any(isinstance(row.get(name), list | tuple | dict) for row in rows):
            checks.add("key", f"{name!r} is a list or a dict; {MAKE_KEY}")


def _batches(rows: Sequence[Any], options: Options) -> list[tuple[int, Sequence[Row]]]:
    if rows and isinstance(rows[0], tuple):
        return [(_ms(at), batch) for at, batch in rows]
    times = [_ms(row[options.time]) for row in rows if row.get(options.time) is not None] if options.time else []
    return [(max(times, default=0), rows)]


def _until(
    batches: list[tuple[int, Sequence[Row]]], until: datetime | timedelta | None
) -> Iterator[tuple[int, Sequence[Row]]]:
    """Add batches without rows, at intervals that count in full as time in which the query runs."""
    yield from batches
    at_ms = batches[-1][0] if batches else 0
    if until is None:
        return
    end_ms = at_ms + duration_ms(until) if isinstance(until, timedelta) else _ms(until)
    number, step_ms = 0, _STEP_MS
    while at_ms < end_ms:
        at_ms = min(end_ms, at_ms + step_ms)
        yield at_ms, ()
        number += 1
        step_ms *= _STEP_FACTOR if number % 3 == 0 else 1


def _ms(at: Any) -> int:
    if not isinstance(at, datetime):
        raise SessionsArgumentError(f"{at!r} is no datetime")
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


class _Preparation:
    """Makes of rows what `plan.prepared` makes of a DataFrame."""

    def __init__(
        self, options: Options, config: SessionsConfig, partition: str | None, ahead_ms: int, every: Sequence[Row]
    ) -> None:
        self._options = options
        self._by_row = config.timeout_ms is None
        self._partition = partition
        self._ahead_ms = ahead_ms
        # The types are those of all rows, as a batch may have nothing but nulls.
        self._types = {
            name: pa.array([row.get(name) for row in every]).type for name in (*options.keys, *options.carry)
        }

    def frame(self, rows: Sequence[Row], batch_ms: int) -> pa.RecordBatch:
        """Return rows as a frame of the packer."""
        options = self._options
        timeouts = [_timeout(row.get(options.timeout)) if self._by_row else 1 for row in rows]
        times = [self._time(row, batch_ms) for row in rows]
        columns = self._columns(rows)
        keys = list(zip(*(columns[f"k{place}"].to_pylist() for place in range(len(options.keys))), strict=True))
        reasons = [self._reason(row) for row in rows]
        content = [
            (key, timeout, reason, tuple(row.get(name) for name in options.carry))
            for row, key, timeout, reason in zip(rows, keys, timeouts, reasons, strict=True)
        ]
        kinds = [_kind(key, timeout, time_ms) for key, timeout, time_ms in zip(keys, timeouts, times, strict=True)]
        made: dict[str, pa.Array] = {
            "at": pa.array(stamps(np.array(times, np.int64), kinds)),
            "row": pa.array(map(_hash, content), pa.int64()),
            "key": pa.array(map(_hash, keys), pa.int64()),
            "part": pa.array([int(row.get(self._partition or "") or 0) for row in rows], pa.int64()),
        }
        if self._by_row:
            made["timeout"] = pa.array(timeouts, pa.int64())
        if options.ends is not None:
            made["reason"] = pa.array(reasons, pa.string())
        return pa.RecordBatch.from_pydict(made | columns)

    def _columns(self, rows: Sequence[Row]) -> dict[str, pa.Array]:
        """Return the columns of the key and of what is carried, each with its one type: 1.5 and 1.50 are one key."""
        places = (("k", self._options.keys), ("c", self._options.carry))
        return {
            f"{letter}{place}": pa.array([row.get(name) for row in rows], self._types[name])
            for letter, names in places
            for place, name in enumerate(names)
        }

    def _time(self, row: Row, batch_ms: int) -> int:
        at = row.get(self._options.time) if self._options.time else None
        ms = NO_TIME if at is None else _ms(at)
        return ms if 0 <= ms <= batch_ms + self._ahead_ms else UNTIMED_MS

    def _reason(self, row: Row) -> str | None:
        ends: str | Callable[[Row], Any] | None = self._options.ends
        value = row.get(ends) if isinstance(ends, str) else None if ends is None else ends(row)
        if isinstance(value, bool):
            return "ended" if value else None
        return value


def _timeout(seconds: Any) -> int:
    value = float(seconds or 0)
    return round(value * 1000) if 0 < value <= DURATION_MAX_MS / 1000 else 0


def _kind(key: tuple[Any, ...], timeout_ms: int, time_ms: int) -> RowKind:
    if any(part is None or part != part for part in key):  # noqa: PLR0124 - a number that is none
        return RowKind.UNKEYED
    if timeout_ms <= 0:
        return RowKind.UNTIMEOUTED
    return RowKind.UNTIMED if time_ms == UNTIMED_MS else RowKind.EVENT


def _hash(value: tuple[Any, ...]) -> int:
    # As in Spark, the negative zero is zero.
    value = tuple(part + 0.0 if isinstance(part, float) else part for part in value)
    return int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), signed=True)
