"""The job as the engine runs it: its checkpoint, its configuration and its query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.operations import OperationLimits
from heartwheel.operations_job.advance import OperationsConfig, advance_operations
from heartwheel.operations_job.packer import OperationPacker, pack_operations
from heartwheel.phrases import count
from heartwheel.settings import Settings
from heartwheel.settings.locations import is_local
from heartwheel.settings.models import CheckpointSettings
from heartwheel.spark import query as queries
from heartwheel.spark.checkpoint import Manifest, add_count, add_run, open_checkpoint
from heartwheel.spark.faults import Fault
from heartwheel.spark.job_config import stream_config
from heartwheel.spark.progress import Progress
from heartwheel.spark.schema import PACKED
from heartwheel.spark.state_function import state_function
from heartwheel.spark.ticker import new_run


def operations_config(settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> OperationsConfig:
    """Return the settings for the job.

    Args:
        settings: the checked configuration.
        shuffle_partitions: of the checkpoint, where it exists, else of the settings.
        runs: the runs of the ticker that the checkpoint knows.
    """
    operations = settings.operations
    return OperationsConfig(
        **stream_config(settings, shuffle_partitions=shuffle_partitions, runs=runs),
        source=operations.topics.requests,
        topics={"outcomes": operations.topics.outcomes, "rejects": settings.kafka.topics.rejects},
        limits=OperationLimits(
            operations_max=operations.operations_per_shard_max,
            watermarks_max=operations.watermarks_per_shard_max,
            waiting_max=operations.unordered_per_shard_max,
            timeout_ms_max=operations.timeout_max_ms,
            remembered_ms=operations.remember_ms,
        ),
    )


class OperationsJob:
    """The job of delayed operations: operations in, their outcomes out.

    Args:
        settings: the checked configuration.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """

    def __init__(self, settings: Settings) -> None:
        location = settings.operations.checkpoint_location
        checkpoint = CheckpointSettings(location=location, shared=settings.checkpoint.shared)
        self.settings = settings.model_copy(update={"checkpoint": checkpoint})
        self.run = new_run()
        self._open(None)

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint, as `Job.open` has it."""
        if not is_local(self.settings.checkpoint.location):
            self._open(spark)
        self._take(self.manifest, add_run(self.settings.checkpoint.location, self.run, spark))

    def _open(self, spark: SparkSession | None) -> None:
        topic = self.settings.operations.topics.requests
        manifest = open_checkpoint(self.settings, spark=spark, topic=topic, topic_key="operations.topics.requests")
        self._take(manifest, ())

    def _take(self, manifest: Manifest, runs: tuple[str, ...]) -> None:
        self.manifest = manifest
        self.config = operations_config(self.settings, shuffle_partitions=manifest.shuffle_partitions, runs=runs)

    def start(self, spark: SparkSession, *, partitions: int = 0, **trigger: Any) -> StreamingQuery:
        """Start the query, as `Job.start` has it."""
        config = replace(self.config, counts=add_count(self.settings.checkpoint.location, partitions, spark))
        packer = OperationPacker(
            config.source,
            config.shards,
            config.value_bytes_max,
            config.limits.timeout_ms_max,
            config.runs,
            partitions_max=max((count for count, _ in config.counts), default=0),
        )
        pack = partial(_pack, packer=packer, slots=config.slots)
        packed = queries.heartbeats(spark, config).coalesce(config.map_tasks).mapInArrow(pack, PACKED)
        frame = queries.advanced(packed, state_function(config, advance_operations))
        return queries.write(frame, config, name="heartwheel-operations", **trigger)

    def heed(self, fault: Fault) -> None:
        """Change nothing: nothing that ends this job would be mended by it."""


def _pack(batches: Iterator[pa.RecordBatch], **arguments: Any) -> Iterator[pa.RecordBatch]:
    return pack_operations(batches, **arguments)


def line_of(batch: Progress) -> str:
    """Return in one line what a batch did; the figures stand where those of the heartbeat job do.

    Args:
        batch: of this job.
    """
    parts = [
        f"batch {batch.batch_id}",
        count(batch.heartbeats, "record"),
        f"{count(batch.members, 'operation')} waiting",
        f"{batch.triggers:,} completed",
        f"{batch.expired:,} expired",
    ]
    if batch.rejected:
        parts.append(f"{batch.rejected:,} rejected")
    if batch.held:
        parts.append(f"catching up, {batch.behind:,} behind")
    return f"{', '.join(parts)} in {batch.duration_ms / 1000:.2f} s"
