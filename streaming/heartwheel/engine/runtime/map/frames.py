"""How much of the log crosses to a Python worker at once, and how much of it is packed at once.

Spark can end an Arrow batch by its bytes. To do so it adds up the bytes of all columns after every record, which is a
quarter of what the JVM's tasks spend on a record (1.89 core-us with the sum, 1.53 without). Nearly all records are
short, and a number of short records is a bound of bytes too. So a query begins with batches of `BATCH_RECORDS_MAX`
records, none of which has a key or a value of more than `SHORT_BYTES_MAX`. A longer one ends the query by name,
before anything of its batch is written, and the query that is started in its place bounds its batches by bytes
(`HeartbeatPlugin.adapt_to`).

An Arrow batch is small, so that long records are rare and its buffers stay in a core's cache. A frame, which is packed
at once, is large, because every frame costs each shard a pack. The worker joins batches to frames (`frames_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_RECORDS_MAX: Final = 2_048
"""Most records of an Arrow batch."""

SHORT_BYTES_MAX: Final = 8 << 10
"""Longest key, and longest value, in Arrow batches that only the number of their records bounds: 32 MiB in all."""

FRAME_RECORDS_MAX: Final = 65_536
"""Most records of a frame."""

FRAME_BYTES_MAX: Final = 64 << 20
"""Most bytes of a frame that is more than one Arrow batch."""

LONG_RECORD_ERROR: Final = "LongRecordError"
"""What the error of a longer one begins with."""

_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNBOUNDED: Final = str(2**31 - 1)
"""The one value with which Spark adds nothing up (`BatchedPythonArrowInput`)."""

FRAME_SETTINGS: Final[Mapping[str, str]] = {
    _RECORDS: str(BATCH_RECORDS_MAX),
    # Far below the 2 GiB that a binary column of Arrow can hold.
    _BYTES: "64m",
}
"""The properties of a session with which Spark bounds Arrow batches by bytes."""


def is_bounded_by(conf: Mapping[str, str]) -> bool:
    """Return whether a person has set a bound of Arrow batches, which then holds from the start.

    Args:
        conf: `[spark.conf]` of the configuration.
    """
    return not FRAME_SETTINGS.keys().isdisjoint(conf)


def bound_batches(spark: SparkSession, *, by_bytes: bool) -> None:
    """Bound the Arrow batches of the queries that are started from now on.

    Args:
        by_bytes: whether Spark is to add up their bytes; else only records of which none is long may be put in.
    """
    counted = spark.sparkContext.getConf().get(_BYTES) or FRAME_SETTINGS[_BYTES]
    spark.conf.set(_BYTES, counted if by_bytes else _UNBOUNDED)


def frames_of(batches: Iterable[pa.RecordBatch], records_max: int = FRAME_RECORDS_MAX) -> Iterator[pa.RecordBatch]:
    """Join Arrow batches to frames, in their order; one that is larger than a frame is one by itself.

    Args:
        batches: of one schema.
        records_max: most records of a frame.
    """
    parts: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        if parts and (records + len(batch) > records_max or size + batch.nbytes > FRAME_BYTES_MAX):
            yield pa.concat_batches(parts)
            parts, records, size = [], 0, 0
        parts.append(batch)
        records += len(batch)
        size += batch.nbytes
    if parts:
        yield pa.concat_batches(parts)
