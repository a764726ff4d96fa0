"""Several `sessions()` in one Spark: in two queries at once, and in one query."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions
from support.sink import Sink, run_to_end, started, until, utc

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEATS = (("a", "north", 0), ("b", "north", 10), ("a", "south", 25), ("b", "north", 60), ("a", "north", 100))
"""Device, site and second after noon, a file each."""

DEVICES: dict[str, Any] = {"key": "device", "timeout": "30 seconds", "time": "seen"}
SITES: dict[str, Any] = {"key": "site", "timeout": "50 seconds", "time": "seen", "name": "sites"}


@pytest.fixture
def beats(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Give a stream of the beats, one a batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, (device, site, second) in enumerate(BEATS):
        file = folder / f"{number}.json"
        seen = NOON + timedelta(seconds=second)
        file.write_text(json.dumps({"device": device, "site": site, "seen": seen.isoformat()}))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    source = spark.readStream.schema("device string, site string, seen timestamp")
    return source.option("maxFilesPerTrigger", 1).json(str(folder))


@pytest.fixture
def unchecked(spark: SparkSession) -> Iterator[None]:
    """Let Spark take several state functions in one query, as the page says."""
    name = "spark.sql.streaming.unsupportedOperationCheck"
    spark.conf.set(name, "false")
    yield
    spark.conf.unset(name)


def expected(arguments: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what comes out without Spark, a batch a beat."""
    rows = [{"device": device, "site": site, "seen": NOON + timedelta(seconds=at)} for device, site, at in BEATS]
    plain = {name: value for name, value in arguments.items() if name != "name"}
    batches = [(NOON + timedelta(days=1, seconds=number), [row]) for number, row in enumerate(rows)]
    return told(arguments["key"], sessions.test(batches, **plain))


def told(key: str, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what rows say, in the order of time."""
    found = [(utc(row["at"]), row[key], row["event"], row["times"], row["reason"]) for row in rows]
    return sorted(found, key=lambda row: row[:3])


def observed(query: Any) -> set[str]:
    """Return the names of the figures of the last batch."""
    progress = query.lastProgress
    return set() if progress is None else set(progress["observedMetrics"])


def test_two_queries_at_once(beats: DataFrame, tmp_path: Path) -> None:
    """Each has its own sessions, of other keys and with another timeout, and its own figures."""
    devices, sites = Sink(), Sink()
    with (
        started(sessions(beats, **DEVICES), devices, tmp_path / "devices") as one,
        started(sessions(beats, **SITES), sites, tmp_path / "sites") as other,
    ):
        until(one, lambda: len(devices.rows()) >= len(expected(DEVICES)), "the rows of devices")
        until(other, lambda: len(sites.rows()) >= len(expected(SITES)), "the rows of sites")
        until(one, lambda: observed(one) == {"heartwheel_sessions"}, "the figures of devices")
        until(other, lambda: observed(other) == {"sites"}, "the figures of sites")
    for arguments, sink in ((DEVICES, devices), (SITES, sites)):
        wanted = expected(arguments)
        assert told(arguments["key"], sink.rows())[: len(wanted)] == wanted


def of_both(beats: DataFrame) -> DataFrame:
    """Ask for devices and sites at once."""
    devices = sessions(beats, **DEVICES).withColumnRenamed("device", "name").withColumn("of", F.lit("device"))
    return devices.unionByName(
        sessions(beats, **SITES).withColumnRenamed("site", "name").withColumn("of", F.lit("site"))
    )


def test_two_in_one_query_are_refused_by_spark(beats: DataFrame, tmp_path: Path) -> None:
    """By itself, before it begins."""
    with pytest.raises(AnalysisException, match="Multiple applyInPandasWithStates are not supported"):
        run_to_end(of_both(beats), Sink(), tmp_path / "checkpoint")


@pytest.mark.usefixtures("unchecked")
def test_two_in_one_query_without_that_check(beats: DataFrame, tmp_path: Path) -> None:
    """Their union has the rows that each gives alone, and a restart goes on with both."""
    sink = Sink()
    run_to_end(of_both(beats), sink, tmp_path / "checkpoint")
    run_to_end(of_both(beats), sink, tmp_path / "checkpoint")
    for arguments in (DEVICES, SITES):
        rows = [row for row in sink.rows() if row["of"] == arguments["key"]]
        assert told("name", rows) == expected(arguments)


def test_one_call_for_two_kinds_of_key(beats: DataFrame, tmp_path: Path) -> None:
    """With a row for each kind, a key of kind and name, and a timeout that depends on the kind, there is one call."""
    kinds = F.explode(F.create_map(F.lit("device"), "device", F.lit("site"), "site")).alias("of", "name")
    sink = Sink()
    timeout = F.when(F.col("of") == "device", 30).otherwise(50)
    run_to_end(
        sessions(beats.select("seen", kinds), key=["of", "name"], timeout=timeout, time="seen"), sink, tmp_path / "c"
    )
    for arguments in (DEVICES, SITES):
        rows = [row for row in sink.rows() if row["of"] == arguments["key"]]
        assert told("name", rows) == expected(arguments)


def test_in_the_midst_of_a_plan(spark: SparkSession, beats: DataFrame, tmp_path: Path) -> None:
    """Behind a union, a watermark, a join and the removal of duplicates, before another join: the same rows."""
    sites = spark.createDataFrame([("north", 1), ("south", 2)], "site string, number int")
    twice = beats.withColumn("partition", F.lit(0)).union(beats.withColumn("partition", F.lit(1)))
    joined = twice.withWatermark("seen", "1 hour").join(sites, "site")
    once = joined.dropDuplicatesWithinWatermark(["device", "seen"])
    found = sessions(once, **DEVICES, carry=["number"]).join(sites.withColumnRenamed("site", "place"), "number")
    sink = Sink()
    run_to_end(found, sink, tmp_path / "checkpoint")
    assert told("device", sink.rows()) == expected(DEVICES)
    came = {row["device"]: row["place"] for row in sink.rows("came")}
    assert came == {"a": "north", "b": "north"}


def test_a_mode_that_spark_does_not_have_for_it(beats: DataFrame, tmp_path: Path) -> None:
    """Rows are never changed later, so the mode of output is `append`, which is Spark's default; others are refused."""
    writer = sessions(beats, **DEVICES).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(AnalysisException, match="applyInPandasWithState in append mode is not supported with Update"):
        writer.outputMode("update").start()
