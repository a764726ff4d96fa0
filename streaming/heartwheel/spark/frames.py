"""How much of the log crosses to a Python worker at once: the bounds of a frame of records.

Spark can end a frame by its bytes, and adds them up over all columns after every record that it puts in: a quarter of
what the JVM's tasks spend on a record (`docs/performance.md`). Nearly all records are short, and of those a number is a
bound of bytes, too: so a query begins with frames of `RECORDS_MAX` records, none of which has a key or a value of more
than `SHORT_BYTES_MAX`. A longer one ends the query by name, before anything of its batch is written down, and the query
that is started in its place bounds its frames by bytes (`HeartbeatJob.heed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_MAX: Final = 65_536
"""Most records of a frame."""

SHORT_BYTES_MAX: Final = 1_024
"""Longest key, and longest value, in frames that only the number of their records bounds."""

LONG_RECORD_ERROR: Final = "LongRecordError"
"""What the error of a longer one begins with."""

_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
_UNBOUNDED: Final = str(2**31 - 1)
"""The one value with which Spark adds nothing up (`BatchedPythonArrowInput`)."""

FRAME_SETTINGS: Final[Mapping[str, str]] = {
    # Beside their bound, large frames repeat fewer bodies after the shuffle.
    _RECORDS: str(RECORDS_MAX),
    # Far below the 2 GiB that a binary column of Arrow can hold.
    _BYTES: "64m",
}
"""The properties of a session with which Spark bounds its frames by bytes."""


def is_bounded_by(conf: Mapping[str, str]) -> bool:
    """Tell whether a person has set a bound of frames, which then holds from the start.

    Args:
        conf: `[spark.conf]` of the configuration.
    """
    return not FRAME_SETTINGS.keys().isdisjoint(conf)


def bound_frames(spark: SparkSession, *, by_bytes: bool) -> None:
    """Bound the frames of the queries that are started from now on.

    Args:
        spark: the session.
        by_bytes: whether Spark is to add up their bytes; else only records of which none is long may be put in.
    """
    counted = spark.sparkContext.getConf().get(_BYTES) or FRAME_SETTINGS[_BYTES]
    spark.conf.set(_BYTES, counted if by_bytes else _UNBOUNDED)
