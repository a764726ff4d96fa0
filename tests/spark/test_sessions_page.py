"""The first lines of docs/sessions.md, as they are: into a table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from support.sink import until

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "sessions.md"
SCHEMA = "device_id string, at timestamp, type string, firmware string, site string"
BEATS = [
    {"device_id": "a", "at": "2026-01-01T12:00:00Z", "type": "beat", "firmware": "1", "site": "x"},
    {"device_id": "b", "at": "2026-01-01T12:00:10Z", "type": "beat", "firmware": "1", "site": "x"},
    {"device_id": "b", "at": "2026-01-01T12:01:00Z", "type": "bye", "firmware": "1", "site": "x"},
    {"device_id": "c", "at": "2026-01-01T12:01:00Z", "type": "beat", "firmware": "2", "site": "y"},
    {"device_id": "c", "at": "2026-01-01T12:01:05Z", "type": "bye", "firmware": "2", "site": "y"},
]


def gone(spark: SparkSession) -> DataFrame:
    """Read the table anew: Spark remembers which files it had."""
    spark.catalog.refreshTable("ops.devices_gone")
    return spark.table("ops.devices_gone").where("event = 'gone'")


def test_the_first_lines_of_the_page_fill_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """Who was silent and who said goodbye is in the table of a catalog, with the last values of the columns."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "beats.json").write_text("".join(json.dumps(row) + "\n" for row in BEATS))
    code = re.findall(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    code, found = re.subn(r'(?<="checkpointLocation", ")[^"]+', str(tmp_path / "checkpoint"), code)
    assert found == 1
    spark.sql(f"create database ops location '{tmp_path / 'ops'}'")
    try:
        exec(code, {"F": F, "events": spark.readStream.schema(SCHEMA).json(str(folder))})  # noqa: S102 - the page's own
        (query,) = spark.streams.active
        try:
            until(query, lambda: gone(spark).count() == 3, "three devices that are gone")
            columns = ("device_id", "reason", F.unix_seconds("at") - F.unix_seconds("last_seen"), "firmware", "site")
            rows = sorted(tuple(row) for row in gone(spark).select(*columns).collect())
        finally:
            query.stop()
    finally:
        spark.sql("drop database ops cascade")
    assert rows == [("a", "timeout", 30, "1", "x"), ("b", "timeout", 30, "1", "x"), ("c", "ended", 5, "2", "y")]
