"""The batch that a task belongs to, as Spark tells each of its tasks."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext

BATCH_PROPERTY: Final = "streaming.sql.batchId"
"""Where Spark tells each task of a micro-batch its number (`MicroBatchExecution.BATCH_ID_KEY`)."""


def running_batch() -> int | None:
    """Return the number of the batch that this task belongs to; `None` if Spark does not say it."""
    task = TaskContext.get()
    number = None if task is None else task.getLocalProperty(BATCH_PROPERTY)
    return None if number is None else int(number)
