"""The arguments of `sessions` as Spark's columns."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from heartwheel.engine.sessions.arguments import Checks, Options
from heartwheel.engine.sessions.config import DURATION_MAX_MS
from heartwheel.engine.sessions.plan import Inputs, quoted


def inputs_of(
    events: DataFrame, options: Options, partition: str | Column | None, ticks: Column | None, checks: Checks
) -> Inputs:
    """Return the columns that arguments name; what is wrong with them is added to `checks`.

    Args:
        events: the rows.
        options: the arguments.
        partition: the column of the source's partition, if there is such.
        ticks: which rows are ticks.
        checks: collects the errors.
    """
    columns = _Columns(events, checks)
    time, reason, timeout_ms = None, None, None
    if options.time is not None:
        time, _ = columns.of("time", options.time, (TimestampType, TimestampNTZType), "timestamps", _AS_TIME)
    if options.ends is not None:
        ends, kind = columns.of("ends", options.ends, (BooleanType, StringType), "booleans or strings")
        reason = F.when(ends, F.lit("ended")) if isinstance(kind, BooleanType) else ends
    if options.constant_timeout(events.columns) is None:
        timeout, kind = columns.of(
            "timeout", options.timeout, (NumericType, DayTimeIntervalType), "seconds or day-time intervals"
        )
        timeout_ms = _ms_of(timeout, kind)
    tick = None
    if ticks is not None:
        tick, _ = columns.of("ticks", ticks, (BooleanType,), "booleans")
    ahead_ms = checks.duration("ahead", options.ahead)
    found = partitions_of(events, partition)
    if partition is not None and (isinstance(partition, Column) or partition != PARTITION):
        columns.of("partition", partition, (IntegralType,), "whole numbers", "F.xxhash64 makes them of other values")
    return Inputs(options.keys, options.carry, time, timeout_ms, reason, tick, found, ahead_ms)


PARTITION: Final = "partition"
"""The column that is looked for if nothing is said, as Kafka's source names it."""

_AS_TIME = "of milliseconds F.timestamp_millis makes timestamps, of text F.to_timestamp"


def partitions_of(events: DataFrame, partition: str | Column | None) -> Column | None:
    """Return the column with the partition of the source, of whole numbers; `None` if there is none."""
    if not isinstance(partition, str):
        return partition
    return F.col(quoted(partition)) if dict(events.dtypes).get(partition) in _NUMBERS else None


_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def output_schema(events: DataFrame, options: Options) -> StructType:
    """Return the schema of what `sessions` returns."""
    fields = {field.name: field for field in events.schema.fields}
    made = (
        ("event", StringType()),
        *((name, TimestampType()) for name in ("at", "first_seen", "last_seen", "deadline")),
        ("silent_for", DoubleType()),
        ("times", LongType()),
        ("reason", StringType()),
    )
    return StructType(
        [
            *(StructField(name, fields[name].dataType) for name in options.keys),
            *(StructField(name, kind) for name, kind in made),
            *(StructField(name, fields[name].dataType) for name in options.carry),
            StructField("id", StringType()),
        ]
    )


class _Columns:
    """Columns by argument, each of a type that the argument takes."""

    def __init__(self, events: DataFrame, checks: Checks) -> None:
        self._events = events
        self._checks = checks

    def of(
        self, argument: str, value: Any, kinds: tuple[type[DataType], ...], wanted: str, hint: str = ""
    ) -> tuple[Column, DataType]:
        """Return a column and its type; a wrong one is an error, and some column."""
        if isinstance(value, str) and value not in self._events.columns:
            self._checks.add(argument, f"there is no column {value!r}; there are {', '.join(self._events.columns)}")
            return F.lit(None), kinds[0]()
        if not isinstance(value, str | Column):
            self._checks.add(argument, f"{value!r} is neither a column nor the name of one")
            return F.lit(None), kinds[0]()
        column = F.col(quoted(value)) if isinstance(value, str) else value
        kind = self._events.select(column.alias("value")).schema["value"].dataType
        if not isinstance(kind, kinds):
            self._checks.add(
                argument, f"it is a column of {kind.simpleString()}, and takes {wanted}{f'; {hint}' if hint else ''}"
            )
        return column, kind


def _ms_of(timeout: Column, kind: DataType) -> Column:
    """Return a timeout in ms; null if it is not a possible one, because a single row must not end the query."""
    if isinstance(kind, DayTimeIntervalType):
        ms = F.unix_millis(F.timestamp_millis(F.lit(0)) + timeout)
        return F.when(ms <= DURATION_MAX_MS, ms)
    seconds = timeout.cast("double")
    return F.when(seconds <= DURATION_MAX_MS / 1000, F.round(F.greatest(seconds, F.lit(0.0)) * 1000).cast("long"))
