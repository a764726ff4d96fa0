"""What a start does about a batch that the job could not finish: pass over what was asked for, or say what ends it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.job import Job
from heartwheel.engine.runtime.driver.planned_batch import READ_AHEAD_MAX, PlannedBatch, is_finished, planned_batch
from heartwheel.engine.runtime.driver.skip import SkipRequest, finish, prepare, read_singly
from heartwheel.engine.runtime.driver.starts import (
    ENOUGH,
    Starts,
    command_to_skip,
    count_out_of_memory,
    with_this_start,
    words_on,
    write_starts,
)
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.engine.runtime.state.output import reject_record, rows
from heartwheel.engine.runtime.state.schema import OUTPUT
from heartwheel.kafka.bounded import OversizedBatch
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.oversized import find_oversized
from heartwheel.settings import format_size

_NEVER = 0

_log = logging.getLogger(__name__)


class Unfinished:
    """Deal with the batch that Spark has planned and not finished, at one start of a job."""

    def __init__(self, job: Job[Any]) -> None:
        self._job = job
        self._location = job.settings.checkpoint.location
        self._memory_bytes = job.settings.spark.driver_memory_bytes
        self._store: CheckpointStore | None = None
        self._request: SkipRequest | None = None

    def look(self, spark: SparkSession | None) -> Fault | None:
        """Count this start, and find out whether it would end as those before; once the checkpoint can be reached.

        Args:
            spark: the session; without one only a checkpoint that is a folder is looked at.

        Returns:
            Why the job is not to be started again on this batch, if so.

        Raises:
            SkipError: a request to pass over records cannot be decoded.
            OSError: the checkpoint cannot be read or written.
        """
        if self._store is not None:
            return None
        self._store = open_store(self._location, spark)
        if self._store is None:
            return None
        self._request = prepare(self._store)
        batch = planned_batch(self._store, self._job.config.source)
        if batch is None:
            return None
        starts = with_this_start(self._store, batch, self._memory_bytes)
        fault = self._explained(batch, starts) if starts.starts >= ENOUGH else None
        if fault is None:  # else nothing runs that could end on it
            write_starts(self._store, starts)
        return fault

    def pass_over(self, spark: SparkSession, partitions: int, watch: Callable[[StreamingQuery], None]) -> None:
        """Finish the batch that a request to pass over records is about, without them.

        Args:
            partitions: how many the topic has, 0 if that is not known.
            watch: waits until a query has ended.

        Raises:
            OSError: the checkpoint cannot be read or written.
        """
        request, store = self._request, self._store
        if request is None or store is None:
            return
        if not is_finished(store, request.batch):
            batch = planned_batch(store, request.topic)
            near = batch is not None and any(skip.partition in batch.spans() for skip in request.skips)
            with read_singly(self._job) if near else contextlib.nullcontext():
                query = self._job.start(spark, partitions=partitions, once=True)
            watch(query)
        if is_finished(store, request.batch):  # else the job was asked to stop
            config = self._job.config
            rejects = rows([reject_record(reject) for reject in request.rejects()], config.topics)
            records = queries.records(spark.createDataFrame(rejects, OUTPUT)).write.format("kafka")
            records.options(**queries.SINK_OPTIONS, **config.kafka_options).save()
            finish(store, request)
            self._request = None

    def note_out_of_memory(self) -> None:
        """Write down that the JVM has ended for want of memory, where that can be done without one."""
        store = open_store(self._location, None)
        batch = planned_batch(store, self._job.config.source) if store is not None else None
        if store is not None and batch is not None:
            count_out_of_memory(store, batch, self._memory_bytes)

    def _explained(self, batch: PlannedBatch, starts: Starts) -> Fault | None:
        oversized = self._oversized(batch)
        words = words_on(batch, starts, oversized)
        if oversized:
            return Fault(words, command_to_skip(batch, oversized[0], flags=self._flags()), _NEVER)
        if starts.out_of_memory >= ENOUGH:
            hint = (
                f"raise spark.driver_memory, which is {format_size(self._memory_bytes)}; "
                f"heartwheel skip{self._flags()} gets past records of it"
            )
            return Fault(words, hint, _NEVER)
        _log.warning("%s; nothing in it is too large, so it is tried again", words)
        return None

    def _flags(self) -> str:
        flag = self._job.skip_flag
        return f"{f' {flag}' if flag else ''} --checkpoint {self._location}"

    def _oversized(self, batch: PlannedBatch) -> list[OversizedBatch]:
        kafka = self._job.settings.kafka
        try:
            spans = {partition: (first, end + READ_AHEAD_MAX) for partition, (first, end) in batch.spans().items()}
            return find_oversized(kafka.bootstrap_servers, batch.topic, spans, properties=kafka.client)
        except (KafkaUnreachableError, KafkaRefusedError) as error:
            _log.warning("what is planned cannot be looked at: %s", error)
            return []
