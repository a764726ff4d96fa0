"""`sessions` on Spark: keys and carried columns of any type come back as they were."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions
from support.sink import Sink, run_to_end

pytestmark = pytest.mark.spark

KEYS: dict[str, list[Any]] = {
    "string": ["b", "ä \N{SNOWMAN}\n"],
    "bigint": [-(1 << 63), (1 << 63) - 1],
    "binary": [bytearray(b""), bytearray(b"\x00\xff")],
    "decimal(38,6)": [Decimal("-1.000000"), Decimal("12345678901234567890123456789012.123456")],
    "date": [date(1969, 12, 31), date(2026, 2, 28)],
    "timestamp": [datetime(1999, 12, 31, 23, 59, 59, 999999, UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    "boolean": [False, True],
    "double": [-0.5, 1e300],
}
"""Two keys of each type, in order."""

CARRIED = "tags array<string>, place struct<site:string,at:array<decimal(9,4)>>, size decimal(20,3), note string"
ROWS: list[tuple[Any, ...]] = [
    (["x", None], Row(site="north", at=[Decimal("1.5000"), None]), Decimal("3.250"), None),
    ([], Row(site=None, at=None), None, "a\N{SNOWMAN}"),
    (None, None, Decimal("-1.000"), ""),
]
SEEN = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_a_type_come_back(spark: SparkSession, kind: str) -> None:
    """The key column has the type and the values of the source, and its two keys are two."""
    rows = [(key, SEEN) for key in KEYS[kind] for _ in range(2)]
    events = spark.createDataFrame([*rows, (None, SEEN)], f"key {kind}, seen timestamp")
    found = sessions(events, key="key", timeout="30 seconds", time="seen", emit=["came"])
    assert found.schema["key"].dataType.simpleString() == kind
    assert [row["key"] for row in found.orderBy("key").collect()] == [_as_spark(key) for key in KEYS[kind]]


def _as_spark(key: Any) -> Any:
    """Return a key as `collect` gives it: a time in the zone of this process, without naming it."""
    return key.astimezone().replace(tzinfo=None) if isinstance(key, datetime) else key


def test_a_composite_key_and_nested_columns_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """A key of many columns; arrays, structs and nulls of carried columns come out of the state as they went in."""
    folder, names = str(tmp_path / "in"), [f"k{place}" for place in range(len(KEYS))]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, KEYS, strict=True))
    keys = [tuple(values[min(row, 1)] for values in KEYS.values()) for row in range(2)]
    keys.append((KEYS["string"][0], *keys[1][1:]))
    rows = [(*key, *carried, SEEN) for key, carried in zip(keys, ROWS, strict=True)]
    events = spark.createDataFrame(rows, f"{schema}, {CARRIED}, seen timestamp")
    events.coalesce(1).write.parquet(folder)
    more = [(*keys[0], None, None, None, "later", SEEN.replace(minute=30))]
    spark.createDataFrame(more, events.schema).coalesce(1).write.mode("append").parquet(folder)
    carry = ["tags", "place", "size", "note"]
    arguments: dict[str, Any] = {"key": names, "timeout": "30 seconds", "time": "seen", "carry": carry}
    source = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(folder)
    sink = Sink()
    stream = sessions(source, emit=["gone"], **arguments)
    assert [stream.schema[name] for name in (*names, *carry)] == [events.schema[name] for name in (*names, *carry)]
    run_to_end(stream, sink, tmp_path / "checkpoint")
    wanted = {row["note"]: row for row in (each.asDict(recursive=True) for each in events.collect())}
    found = {row["note"]: row for row in sink.rows()}
    assert found.keys() == wanted.keys()
    for note, row in found.items():
        assert {name: row[name] for name in (*names, *carry)} == {name: wanted[note][name] for name in (*names, *carry)}


def test_names_with_dots_and_backticks(spark: SparkSession) -> None:
    """Columns are named as they are, whatever SQL would read into it."""
    events = spark.createDataFrame([("a", SEEN, 1)], "`device.id` string, `at.ms` timestamp, `a``b` int")
    found = sessions(events, key="device.id", timeout="1 second", time="at.ms", carry=["a`b"], emit=["came"])
    assert [tuple(row) for row in found.select("`device.id`", "`a``b`").collect()] == [("a", 1)]


def test_timeouts_of_each_row(spark: SparkSession) -> None:
    """A column of seconds or of intervals is the timeout, of each event until the next one of its key."""
    rows = [("a", 0, 5.5), ("b", 0, 20.0), ("c", 30, 1.0), ("d", 0, None)]
    events = spark.createDataFrame(rows, "k string, s int, wait double")
    events = events.withColumn("seen", F.timestamp_millis(F.col("s") * 1000 + 1_767_268_800_000))
    interval = F.expr("wait * INTERVAL '1' SECOND")
    for timeout in ("wait", F.col("wait"), interval):
        found = sessions(events, key="k", timeout=timeout, time="seen", emit=["gone"]).orderBy("k").collect()
        assert [(row["k"], row["silent_for"]) for row in found] == [("a", 5.5), ("b", 20.0)]
