"""`sessions()` with very many keys, or very long ones, on a Spark with its own defaults; a table and JSON.

Run it as `PYTHONPATH=tests python -m benchmarks.sessions_scale [--keys 10000000] [--shards 8]`, or with
`--key-bytes 10240 --keys 100000`. Keys are hexadecimal digits of a hash. Every key comes once, so that the state grows
to all of them; then batches of known keys follow. A query that ends by an error says so, with what it had got to.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions
from support.bench import say
from support.processes import command_of, descendants_of, memory_mib

START_MS: Final = 1_767_268_800_000
METRICS: Final = "heartwheel_sessions"


class Peaks:
    """The most memory that the JVM and one Python worker have had, MiB."""

    def __init__(self) -> None:
        self.mib = {"JVM": 0, "Python worker": 0}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Look twice a second during a block."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.5):
                self._take()

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _take(self) -> None:
        for process in descendants_of(os.getpid()):
            name = "JVM" if "java" in command_of(process).partition(" ")[0] else "Python worker"
            with contextlib.suppress(OSError):  # it has ended
                self.mib[name] = max(self.mib[name], memory_mib(process)[1])


def keys_of(spark: SparkSession, chosen: argparse.Namespace) -> DataFrame:
    """Make a stream in which every key comes once, and then again."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", chosen.rows)
    source = source.option("startTimestamp", START_MS).option("advanceMillisPerBatch", 1_000)
    number = (F.col("value") % chosen.keys).cast("string")
    digests = [F.sha2(F.concat(number, F.lit(f"-{part}")), 256) for part in range(-(-chosen.key_bytes // 64))]
    return source.load().select(F.concat(*digests).substr(1, chosen.key_bytes).alias("device"), "timestamp")


def measure(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the query, and give its figures."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    if chosen.heap:
        builder = builder.config("spark.driver.memory", chosen.heap)
    if chosen.shards:
        builder = builder.config("spark.sql.shuffle.partitions", chosen.shards)
    spark = builder.getOrCreate()
    found = sessions(
        keys_of(spark, chosen),
        key="device",
        timeout="1 hour",
        time="timestamp",
        emit=["gone"],
        keys_max=2 * chosen.keys,
    )
    writer = found.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    fill = -(-chosen.keys // chosen.rows)
    progress: list[Any] = []
    peaks, error = Peaks(), ""
    with peaks.watched():
        query = writer.trigger(processingTime="0 seconds").start()
        try:
            while len(progress) < fill + chosen.known and query.isActive:
                query.awaitTermination(1)
                progress = [each for each in query.recentProgress if each["numInputRows"]]
        except StreamingQueryException as caught:
            error = str(caught).splitlines()[0]
        query.stop()
    report = {**_figures(progress, fill), **{f"{name}, most MiB": round(most) for name, most in peaks.mib.items()}}
    spark.stop()
    return {**report, "batches": len(progress), "error": error}


def _figures(progress: list[Any], fill: int) -> dict[str, Any]:
    if not progress:
        return {}
    last = progress[-1]
    figures = last["observedMetrics"][METRICS].asDict()
    refused = sum(each["observedMetrics"][METRICS]["refused"] for each in progress)
    parts = {"new keys": progress[:fill], "known keys": progress[fill:]}
    return {
        **{f"{name}, rows/s": _rate(part) for name, part in parts.items() if part},
        **{f"{name}, longest batch s": max(map(_seconds, part)) for name, part in parts.items() if part},
        "keys kept": figures["alive"],
        "refused": refused,
        "state, MiB, as Spark counts it": round(last["stateOperators"][0]["memoryUsedBytes"] / 2**20),
    }


def _seconds(progress: Any) -> float:
    return float(progress["durationMs"]["triggerExecution"]) / 1000


def _rate(progress: list[Any]) -> int:
    rows = sum(int(each["numInputRows"]) for each in progress)
    return round(rows / sum(map(_seconds, progress)))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--key-bytes", type=int, default=16)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of a batch")
    parser.add_argument("--known", type=int, default=4, help="batches of known keys after the others")
    parser.add_argument("--shards", type=int, help="and shuffle partitions; Spark's own, 200, if left out")
    parser.add_argument("--heap", help="such as 4g; Spark's own, 1g, if left out")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heartwheel-sessions-") as folder:
        report = measure(chosen, Path(folder))
    say(f"{chosen.keys:,} keys of {chosen.key_bytes:,} bytes, {chosen.shards or 200} shards", report)
    sys.stdout.write(json.dumps({**vars(chosen), **report}) + "\n")


if __name__ == "__main__":
    main()
