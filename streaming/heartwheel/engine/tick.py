"""Ticks for a topic of yours: small records that give its quiet partitions a time.

`heartwheel tick --topic T` writes them, and so does a `Ticker` in a program of yours. `sessions` is told which rows are
ticks by `ticks=tick.is_tick("value")`; other readers of the topic skip them (`read_tick`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.wire.tick import Tick, encode_tick, read_tick

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Tick", "Ticker", "encode_tick", "is_tick", "new_run", "read_tick"]


def is_tick(value: str | Column) -> Column:
    """Return a column that says which records are ticks.

    Args:
        value: the column with the records' values, as Spark's Kafka source has it.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark, only where it is used

    text = (F.col(value) if isinstance(value, str) else value).cast("string")
    # Most values are no ticks, and are not parsed.
    return text.contains('"tick"') & F.coalesce(F.get_json_object(text, "$.type") == "tick", F.lit(False))
