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
from heartwheel.engine.sessions.arguments import SessionsArgumentError
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


REFUSED: dict[str, tuple[str, str, str]] = {
    "map": ("map('a', 1)", "is map<string,int>", "map<string,int>, which cannot be carried"),
    "variant": ("parse_json('{}')", "is variant", "variant, which cannot be carried"),
    "months": ("interval '1' month", "is interval month", "interval month, which cannot be carried"),
    "calendar": ("make_interval(1, 2)", "is interval", "interval, which cannot be carried"),
    "null": ("null", "is void", "void, which cannot be carried"),
    "map in a struct": ("named_struct('m', map('a', 1))", "is struct<m:map", "which cannot be carried; carry its text"),
    "struct": ("named_struct('a', 1)", "is struct<a:int>; a key is a number", ""),
    "array": ("array(1)", "is array<int>; a key is a number", ""),
    "collation": ("'a' collate utf8_lcase", "F.collate", ""),
}
"""An expression, and what is said of it as a key and as what is carried; nothing where it can be carried."""


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_cannot_be_are_refused_by_name(spark: SparkSession, kind: str) -> None:
    """Of keys and of what is carried; what may be carried comes back."""
    expression, as_key, as_carry = REFUSED[kind]
    rows = spark.sql(f"select {expression} as value, 1 as key, timestamp'2026-01-01 12:00:00' as seen")
    arguments: dict[str, Any] = {"timeout": "30 seconds", "time": "seen"}
    with pytest.raises(SessionsArgumentError, match="key: column 'value' is") as caught:
        sessions(rows, key="value", **arguments)
    assert as_key in str(caught.value)
    if not as_carry:
        (found,) = sessions(rows, key="key", carry=["value"], emit=["came"], **arguments).select("value").collect()
        assert found == rows.select("value").first()
        return
    with pytest.raises(SessionsArgumentError, match="carry: column 'value' is") as caught:
        sessions(rows, key="key", carry=["value"], **arguments)
    assert as_carry in str(caught.value)


@pytest.mark.parametrize("wrong", ["'x'", "1.5D", "true", "cast(1 as decimal(3,0))"])
def test_a_partition_of_another_type(spark: SparkSession, wrong: str) -> None:
    """It is refused with the function that makes numbers of it, which then works."""
    rows = spark.sql(f"select 1 as key, timestamp'2026-01-01 12:00:00' as seen, {wrong} as part")
    arguments: dict[str, Any] = {"key": "key", "timeout": "30 seconds", "time": "seen", "emit": ["came"]}
    for given in ("part", F.col("part")):
        with pytest.raises(SessionsArgumentError, match=r"partition: it is a column of .*F\.xxhash64 makes them"):
            sessions(rows, partition=given, **arguments)
    wrong_names: list[Any] = ["nope", 5]
    for wanted in wrong_names:
        with pytest.raises(SessionsArgumentError, match=f"partition: .*{wanted}"):
            sessions(rows, partition=wanted, **arguments)
    assert sessions(rows, partition=F.xxhash64("part", "key"), **arguments).count() == 1


def test_kafkas_name_of_a_partition_asks_for_no_number(spark: SparkSession) -> None:
    """A column `partition` of another type, which nobody has named, is a column as any other."""
    rows = spark.sql("select 1 as key, timestamp'2026-01-01 12:00:00' as seen, 'x' as partition")
    assert sessions(rows, key="key", timeout="30 seconds", time="seen", emit=["came"]).count() == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"key": F.col}, "has what is no name; make a column first, with withColumn"),
        ({"name": ""}, "name: '' is no name of observed metrics"),
        ({"name": 5}, "name: 5 is no name of observed metrics"),
        ({"ticks": True}, "ticks: True is neither a column nor the name of one"),
        ({"ticks": "key"}, "ticks: it is a column of int, and takes booleans"),
        ({"time": "key"}, "time: it is a column of int, and takes timestamps; of milliseconds F.timestamp_millis"),
        ({"ends": "key"}, "ends: it is a column of int, and takes booleans or strings"),
        ({"timeout": "seen"}, "timeout: it is a column of timestamp, and takes seconds or day-time intervals"),
        ({"carry": ["event"]}, "carry: 'event' is a column of the output; rename it"),
    ],
)
def test_wrong_columns_are_named(spark: SparkSession, arguments: dict[str, Any], words: str) -> None:
    """Each with what it takes."""
    rows = spark.sql("select 1 as key, timestamp'2026-01-01 12:00:00' as seen, 'x' as event")
    given: dict[str, Any] = {"key": "key", "timeout": "30 seconds", "time": "seen"}
    with pytest.raises(SessionsArgumentError) as caught:
        sessions(rows, **given | arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("meant", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_zones_and_times_without_one(spark: SparkSession, zone: str, meant: str) -> None:
    """A time without a zone is of the session's, as elsewhere in Spark; what is carried comes back as it was."""
    names = ("spark.sql.session.timeZone", "spark.sql.timestampType")
    before = {name: str(spark.conf.get(name)) for name in names}
    for name, wanted in zip(names, (zone, meant), strict=True):
        spark.conf.set(name, wanted)
    try:
        rows = spark.sql(
            "select 1 as key, timestamp_ntz'2026-01-01 12:00:00' as plain, timestamp_ltz'2026-01-01 12:00:00' as zoned"
        )
        for time in ("plain", "zoned"):
            found = sessions(rows, key="key", timeout="30s", time=time, carry=["plain", "zoned"], emit=["came"])
            assert [found.schema[name].dataType for name in ("plain", "zoned")] == [
                rows.schema[name].dataType for name in ("plain", "zoned")
            ]
            same = found.join(rows.withColumnsRenamed({"plain": "p", "zoned": "z"}), "key")
            equal = (F.col("at") == F.col("z")) & (F.col("plain") == F.col("p")) & (F.col("zoned") == F.col("z"))
            assert [row[0] for row in same.select(equal).collect()] == [True]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_timeouts_of_each_row(spark: SparkSession) -> None:
    """A column of seconds or of intervals is the timeout, of each event until the next one of its key."""
    rows = [("a", 0, 5.5), ("b", 0, 20.0), ("c", 30, 1.0), ("d", 0, None)]
    events = spark.createDataFrame(rows, "k string, s int, wait double")
    events = events.withColumn("seen", F.timestamp_millis(F.col("s") * 1000 + 1_767_268_800_000))
    interval = F.expr("wait * INTERVAL '1' SECOND")
    for timeout in ("wait", F.col("wait"), interval):
        found = sessions(events, key="k", timeout=timeout, time="seen", emit=["gone"]).orderBy("k").collect()
        assert [(row["k"], row["silent_for"]) for row in found] == [("a", 5.5), ("b", 20.0)]
