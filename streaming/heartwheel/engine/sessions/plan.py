"""The Spark side: what `sessions` adds to a DataFrame's plan.

Rows get what the packer needs (`prepared`), are packed by shard, and each shard is advanced. No part of it needs the
JVM's objects, so it works on Spark Connect, too. The last step makes rows of Arrow streams in Python, so that
pandas cannot change decimals, nested columns and integers with nulls on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import StructType, TimestampType

from heartwheel.engine.runtime.driver.query import advanced
from heartwheel.engine.runtime.state.schema import NEW_STATE, PACKED
from heartwheel.engine.runtime.state.state_function import state_function
from heartwheel.engine.sessions.advance import OUTPUT, advance_sessions, frame_of_sessions
from heartwheel.engine.sessions.config import FIGURES, SessionsConfig
from heartwheel.engine.sessions.packer import KIND_BITS, RowKind, decode_rows, pack_events


class Inputs(NamedTuple):
    """The columns of a DataFrame that `sessions` looks at.

    Args:
        keys: names of the key columns.
        carry: names of the carried ones.
        time: the time of a row; `None` for that of its batch.
        timeout_ms: the timeout of a row, ms; `None` where all have one.
        reason: why a row ends the session of its key, null if it does not; `None` if no row does.
        tick: whether a row is a tick; `None` if none is.
        partition: which partition of the source a row is of; `None` for one.
        ahead_ms: how far a row's time may be ahead of the batch, ms.
    """

    keys: Sequence[str]
    carry: Sequence[str]
    time: Column | None
    timeout_ms: Column | None
    reason: Column | None
    tick: Column | None
    partition: Column | None
    ahead_ms: int


def prepared(events: DataFrame, inputs: Inputs) -> DataFrame:
    """Return the rows as the packer reads them.

    Columns: `at` (time and kind, see `packer.stamps`), `key` (hash), `row` (hash of all, if there are columns
    beside the keys), `part`, `timeout` and `reason` if there are such, keys and carried columns. A column costs 50 ns a
    row on the way to Python, so only those that say something are sent.

    Args:
        events: any DataFrame.
        inputs: its columns.
    """
    types = dict(events.dtypes)
    keys = [F.col(quoted(name)) for name in inputs.keys]
    has_key = F.lit(True)
    for name, key in zip(inputs.keys, keys, strict=True):
        has_key &= key.isNotNull()
        if types[name] in ("float", "double"):
            has_key &= ~F.isnan(key)
    tick = F.lit(False) if inputs.tick is None else F.coalesce(inputs.tick, F.lit(False))
    kind = F.when(tick, RowKind.TICK).when(~has_key, RowKind.UNKEYED)
    extra = []
    if inputs.timeout_ms is not None:
        kind = kind.when(F.coalesce(inputs.timeout_ms, F.lit(0)) <= 0, RowKind.UNTIMEOUTED)
        extra.append(F.coalesce(inputs.timeout_ms, F.lit(0)).cast("long").alias("timeout"))
    if inputs.reason is not None:
        extra.append(inputs.reason.cast("string").alias("reason"))
    time_ms = F.lit(-1).cast("long") if inputs.time is None else _time_of(inputs.time, inputs.ahead_ms)
    kind = kind.when(time_ms < 0, RowKind.UNTIMED).otherwise(RowKind.EVENT)
    carry = [F.col(quoted(name)) for name in inputs.carry]
    content = [*keys, *extra, *carry]
    if inputs.partition is not None:
        extra.append(F.coalesce(inputs.partition.cast("long"), F.lit(0)).alias("part"))
    if len(content) > len(keys):
        extra.append(F.xxhash64(F.lit(1), *content).alias("row"))
    return events.select(
        F.shiftleft(time_ms, KIND_BITS).bitwiseOR(kind.cast("long")).alias("at"),
        F.xxhash64(*keys).alias("key"),
        *extra,
        *(key.alias(f"k{place}") for place, key in enumerate(keys)),
        *(column.alias(f"c{place}") for place, column in enumerate(carry)),
    )


def quoted(name: str) -> str:
    """Quote a column's name, which may hold dots."""
    return "`{}`".format(name.replace("`", "``"))


def _time_of(column: Column, ahead_ms: int) -> Column:
    """Return epoch ms; of a row without a time, or from the future, -1.

    Spark's current time is the batch's timestamp, and a repeated batch has the same.
    """
    ms = F.unix_millis(column.cast(TimestampType()))  # its name may mean another type (spark.sql.timestampType)
    now = F.unix_millis(F.current_timestamp())
    return F.when((ms >= 0) & (ms <= now + ahead_ms), ms).otherwise(F.lit(-1).cast("long"))


def planned(events: DataFrame, inputs: Inputs, config: SessionsConfig, schema: StructType, name: str) -> DataFrame:
    """Return the sessions' events as a DataFrame.

    Args:
        events: the rows; streaming or not.
        inputs: their columns.
        config: the query's.
        schema: of what is returned.
        name: of the observed metrics.
    """
    pack = partial(_pack, slots=config.slots, outage_ms=config.outage_ms)
    unpack = partial(_unpack, names=schema.names)
    packed = prepared(events, inputs).mapInArrow(pack, PACKED)
    if config.whole:
        output = packed.groupBy("slot").applyInPandas(_at_once(config), OUTPUT)
    else:
        function = state_function(config, advance_sessions, frame_of_sessions, every_batch=True)
        output = advanced(packed, function, OUTPUT, GroupStateTimeout.ProcessingTimeTimeout)
    sums = (F.sum(figure).alias(figure) for figure in (*FIGURES, "shards"))
    times = F.min("now_ms").alias("now_ms"), F.max("behind_ms").alias("behind_ms")
    return output.observe(name, *sums, *times).select("rows").mapInArrow(unpack, schema)


def _pack(batches: Iterator[pa.RecordBatch], **arguments: Any) -> Iterator[pa.RecordBatch]:
    return pack_events(batches, **arguments)


def _at_once(config: SessionsConfig) -> Callable[[tuple[Any, ...], pd.DataFrame], pd.DataFrame]:
    def advance(key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
        shard_index, batch_ms = config.slots.index(int(key[0])), int(time.time() * 1000)
        _, output = advance_sessions(config, shard_index, NEW_STATE, [frame], batch_ms=batch_ms)
        return frame_of_sessions(output)

    return advance


def _unpack(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("rows").to_pylist():
            if data is not None:
                yield pa.RecordBatch.from_arrays(decode_rows(data).columns, names=names)
