"""`sessions` in running time: idle sources end sessions, stopped queries do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions
from support.job import wait_for
from support.sink import TRIGGER, Sink, started, stopped_for, until, until_batches

pytestmark = pytest.mark.spark

STOPPED_S = 12


def beats(spark: SparkSession, *, keys: int, until_value: int | None = None) -> DataFrame:
    """Make a stream of beats of some keys, ten a second; with `until_value` it falls silent."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    beats = rate.select((F.col("value") % keys).alias("device"), F.col("timestamp").alias("seen"), "value")
    return beats if until_value is None else beats.where(F.col("value") < until_value)


def alive(query: Any) -> Any:
    """Return how many keys had a session in the last batch."""
    return query.lastProgress["observedMetrics"]["heartwheel_sessions"]["alive"]


def rows_read(query: Any) -> int:
    """Return how many rows the last batches of a query have read."""
    return sum(int(progress["numInputRows"]) for progress in query.recentProgress)


@pytest.mark.parametrize("time", [None, "seen"])
def test_an_idle_source_still_ends_sessions(spark: SparkSession, tmp_path: Path, time: str | None) -> None:
    """Batches without rows go on, and with them the time: every key ends, at its deadline, in a memory table."""
    name = f"ended_{time}".lower()
    events = beats(spark, keys=5, until_value=20)
    gone = sessions(events, key="device", timeout="4 seconds", time=time, emit=["gone"], idle="2 seconds")
    writer = gone.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(**TRIGGER).start()
    try:
        until(query, lambda: spark.table(name).count() == 5, "five devices that are gone")
        rows = spark.table(name).orderBy("device").collect()
        until(query, lambda: alive(query) == 0, "none alive")
    finally:
        query.stop()
    assert [row["device"] for row in rows] == [0, 1, 2, 3, 4]
    # In processing time a batch that is late counts as a stop, which is not part of the timeout.
    assert {row["silent_for"] for row in rows} == {4.0} if time else min(row["silent_for"] for row in rows) >= 4
    assert all(row["at"] == row["deadline"] for row in rows)
    assert query.exception() is None


@pytest.mark.proof
def test_a_query_that_was_stopped_reads_its_backlog_in_event_time(spark: SparkSession, tmp_path: Path) -> None:
    """Event time: what was missed is read after the stop, and no key is gone."""
    checkpoint, sink = tmp_path / "checkpoint", Sink()
    gone = sessions(beats(spark, keys=5), key="device", timeout="3 seconds", time="seen", idle="1 second")
    with started(gone, sink, checkpoint) as query:
        until(query, lambda: len(sink.rows("came")) == 5, "five devices")
    wait_for(lambda: stopped_for(checkpoint, STOPPED_S), "a stop that is longer than the timeout")
    with started(gone, sink, checkpoint) as query:
        until(query, lambda: rows_read(query) > 10 * STOPPED_S, "the backlog")
        until_batches(query, 3)
    assert [row for row in sink.rows() if row["event"] != "came"] == []
