"""A sink that keeps the rows of each batch, and waits for conditions on a running query."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from support.job import PATIENCE_S, wait_for

TRIGGER = {"processingTime": "600 milliseconds"}
"""How often a query has a batch: most tests wait for seconds, and a batch costs CPU time even if nothing has come."""


class KilledError(RuntimeError):
    """The sink ends the query, as a crash would: after its output, before the batch is committed."""


class Sink:
    """Keeps what a query writes.

    Args:
        kill_at: ends the query after the first batch from this one on that has rows, once.
    """

    def __init__(self, kill_at: int | None = None) -> None:
        self.batches: list[tuple[int, list[dict[str, Any]]]] = []
        self._kill_at = kill_at
        self._lock = threading.Lock()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Take a batch; `foreachBatch` calls it."""
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        with self._lock:
            self.batches.append((batch, rows))
        if rows and self._kill_at is not None and batch >= self._kill_at:
            self._kill_at = None
            raise KilledError(batch)

    def rows(self, event: str = "") -> list[dict[str, Any]]:
        """Return the rows of all batches, or those of one event."""
        with self._lock:
            return [row for _, rows in self.batches for row in rows if not event or row["event"] == event]


def start(frame: DataFrame, sink: Sink, checkpoint: Path, **trigger: Any) -> StreamingQuery:
    """Start a query into a sink; without a trigger, with batches every 600 ms."""
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return writer.trigger(**(trigger or TRIGGER)).start()


@contextlib.contextmanager
def started(frame: DataFrame, sink: Sink, checkpoint: Path, **trigger: Any) -> Iterator[StreamingQuery]:
    """Run a query during a `with` block, at the end of which it is stopped.

    That interrupts a running batch: its rows may be in the sink already, and come again at the next start. So wait for
    `until_batches` before the end of a block after which no row may come twice.
    """
    query = start(frame, sink, checkpoint, **trigger)
    try:
        yield query
    finally:
        query.stop()


def run_to_end(frame: DataFrame, sink: Sink, checkpoint: Path) -> None:
    """Run a query over all that its source has, and wait for its end."""
    session = frame.sparkSession
    name = "spark.sql.streaming.noDataMicroBatches.enabled"
    before = session.conf.get(name)
    session.conf.set(name, "false")
    try:
        query = start(frame, sink, checkpoint, availableNow=True)
    finally:
        session.conf.set(name, str(before))
    try:
        assert query.awaitTermination(int(PATIENCE_S)), "the query does not end"
    finally:
        query.stop()


def until(query: StreamingQuery, condition: Callable[[], Any], what: str) -> Any:
    """Wait until a condition holds; a query that ends first fails the test with its own error."""

    def held() -> Any:
        found = condition()
        if not found and not query.isActive and (error := query.exception()) is not None:
            raise error
        return found

    return wait_for(held, what)


def until_batches(query: StreamingQuery, number: int) -> None:
    """Wait until a query has finished some more batches."""

    def newest() -> int:
        progress: Mapping[str, Any] | None = query.lastProgress
        return -1 if progress is None else int(progress["batchId"])

    goal = newest() + number
    until(query, lambda: newest() >= goal, f"batch {goal}")


def batch_times_ms(checkpoint: Path) -> list[int]:
    """Return the timestamps of the batches that a checkpoint knows, epoch ms."""
    files = sorted(
        (each for each in (checkpoint / "offsets").iterdir() if each.name.isdigit()), key=lambda at: int(at.name)
    )
    return [int(json.loads(each.read_text().splitlines()[1])["batchTimestampMs"]) for each in files]


def stopped_for(checkpoint: Path, wanted_s: float) -> bool:
    """Return whether the last batch of a query began that long ago."""
    return time.time() * 1000 - batch_times_ms(checkpoint)[-1] >= wanted_s * 1000


def utc(value: datetime) -> datetime:
    """Return a time that Spark gave, in the zone of this process, in UTC."""
    return value.astimezone(UTC)
