"""Start the Python workers beside the first plan of the query, which else would wait for their imports."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from heartwheel.base.worker import Worker


def warm_workers(spark: SparkSession, tasks: int) -> Worker:
    """Run a job that does nothing, in a thread: what it loads and starts, the first batch finds.

    A worker is used again by whoever asks for one with the same environment, so the job goes the way of the query:
    Arrow batches through Python, then a shuffle. It may fail; the batch then starts its workers itself.

    Args:
        spark: the session of a local master.
        tasks: how many workers a stage of the query has at once.

    Returns:
        Its worker, which nobody needs to wait for.
    """
    worker = Worker(lambda: _run(spark, tasks), "warm-workers")
    worker.start()
    return worker


def _run(spark: SparkSession, tasks: int) -> None:
    # Whatever a session raises that is stopped under it: the query meets what is really wrong itself, and says so.
    with contextlib.suppress(Exception):
        spark.range(0, tasks, 1, tasks).mapInArrow(_pass, "id long").groupBy("id").count().collect()


def _pass(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
