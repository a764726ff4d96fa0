"""`sessions` on files: batches of one file, late events, repeated batches, and what a checkpoint refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions
from support.sink import Sink, run_to_end, start, utc

pytestmark = pytest.mark.spark

SCHEMA = "device string, seen timestamp, kind string, firmware int"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TOLD = ("device", "event", "at", "first_seen", "last_seen", "deadline", "silent_for", "times", "reason", "firmware")


def event(device: str, second: float, kind: str = "beat", firmware: int = 1) -> dict[str, Any]:
    """Make one row; times are seconds after noon."""
    return {
        "device": device,
        "seen": (NOON + timedelta(seconds=second)).isoformat(),
        "kind": kind,
        "firmware": firmware,
    }


def write(folder: Path, *files: Iterable[Mapping[str, Any]]) -> Path:
    """Write files of rows, which Spark reads in this order."""
    folder.mkdir(exist_ok=True)
    there = len(list(folder.iterdir()))
    for number, rows in enumerate(files, start=there):
        file = folder / f"{number:03}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """Read a folder as a stream, a file a batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def silent(events: DataFrame, **arguments: Any) -> DataFrame:
    """Ask for the sessions of devices."""
    given: dict[str, Any] = {"key": "device", "timeout": "30 seconds", "time": "seen", "carry": ["firmware"]}
    return sessions(events, **(given | arguments))


def told(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Return rows in the order of time and key, without their ids."""
    listed = [tuple(utc(value) if isinstance(value := row[name], datetime) else value for name in TOLD) for row in rows]
    return sorted(listed, key=lambda row: (row[2], row[0], row[1]))


FILES = (
    [event("a", 0), event("b", 0), event("a", 10, firmware=2)],
    [event("b", 25), event("c", 26), event(None, 27), event("c", 28, kind="bye")],  # type: ignore[arg-type]
    [event("b", 50, firmware=3), event("b", 60)],
    [event("a", 70, firmware=4), event("b", 100)],
)


def test_a_stream_of_files_gives_the_rows_of_the_batch(spark: SparkSession, tmp_path: Path) -> None:
    """The same rows to the id, however they are cut into batches; a query of what is available ends."""
    folder = write(tmp_path / "in", *FILES)
    ends = F.col("kind") == "bye"
    sink = Sink()
    run_to_end(silent(read(spark, folder), ends=ends), sink, tmp_path / "checkpoint")
    assert len({batch for batch, _ in sink.batches}) >= len(FILES)
    whole = silent(spark.read.schema(SCHEMA).json(str(folder)), ends=ends).collect()
    rows = [row.asDict() for row in whole]
    assert told(sink.rows()) == told(rows)
    assert sorted(row["id"] for row in sink.rows()) == sorted(row["id"] for row in rows)
    assert [(row[0], row[1], (row[2] - NOON).total_seconds(), row[8], row[9]) for row in told(rows)] == [
        ("a", "came", 0, None, 1),
        ("b", "came", 0, None, 1),
        ("c", "came", 26, None, 1),
        ("c", "gone", 28, "ended", 1),
        ("a", "gone", 40, "timeout", 2),
        ("a", "back", 70, None, 4),
        ("b", "gone", 90, "timeout", 1),
        ("a", "gone", 100, "timeout", 4),
        ("b", "back", 100, None, 1),
    ]


def test_an_event_that_comes_too_late_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """A late event of a key that is gone gives `back` with reason `late`; with `wait` it comes in time."""
    folder = write(
        tmp_path / "in",
        [event("a", 0), event("b", 0)],
        [event("b", 20), event("b", 40)],
        [event("a", 25), event("b", 41)],
    )
    late, waited = Sink(), Sink()
    run_to_end(silent(read(spark, folder)), late, tmp_path / "late")
    run_to_end(silent(read(spark, folder), wait="20 seconds"), waited, tmp_path / "waited")
    of_a = [row for row in told(late.rows()) if row[0] == "a"]
    assert [(row[1], row[8]) for row in of_a] == [("came", None), ("back", "late"), ("gone", "timeout")]
    assert [row["event"] for row in waited.rows() if row["device"] == "a"] == ["came"]


def test_a_repeated_batch_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    """A query that is killed between its output and the commit writes the same ids again."""
    folder = write(tmp_path / "in", *FILES)
    sink, checkpoint = Sink(kill_at=2), tmp_path / "checkpoint"
    with pytest.raises(StreamingQueryException, match="KilledError"):
        run_to_end(silent(read(spark, folder)), sink, checkpoint)
    killed, rows = sink.batches[-1]
    run_to_end(silent(read(spark, folder)), sink, checkpoint)
    repeated = [found for batch, found in sink.batches if batch == killed]
    assert rows
    assert len(repeated) == 2
    assert [row["id"] for row in repeated[1]] == [row["id"] for row in rows]
    whole = [row.asDict() for row in silent(spark.read.schema(SCHEMA).json(str(folder))).collect()]
    assert {row["id"] for row in sink.rows()} == {row["id"] for row in whole}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "shards": ({"shards": 3}, "the checkpoint was begun with 2 shards, and sessions(shards=3) was called"),
    "columns": ({"carry": ["kind"]}, "the checkpoint was begun with (device string, time of each row, firmware int)"),
    "time": ({"time": None}, "and this query has (device string, firmware int)"),
    "key": (
        {"key": "firmware", "carry": ["device"]},
        "and this query has (firmware int, time of each row, device string)",
    ),
    "timeout": (
        {"timeout": "firmware"},
        "and this query has (device string, time of each row, timeout of each row, firmware",
    ),
}
"""What another query changes, and what its error says."""


def test_another_query_on_a_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Other shards or columns are named in the error of the query, and nothing is lost by the tries."""
    folder = write(tmp_path / "in", *FILES[:2])
    sink, checkpoint = Sink(), tmp_path / "checkpoint"
    run_to_end(silent(read(spark, folder)), sink, checkpoint)
    before = len(sink.batches)
    write(folder, *FILES[2:])
    for what, (changed, words) in REFUSED.items():
        query = start(silent(read(spark, folder), **changed), sink, checkpoint)
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination(120)
        query.stop()
        assert words in str(caught.value), what
        assert len(sink.batches) == before, what
    run_to_end(silent(read(spark, folder)), sink, checkpoint)
    assert sorted(row["device"] for row in sink.rows("back")) == ["a", "b"]
