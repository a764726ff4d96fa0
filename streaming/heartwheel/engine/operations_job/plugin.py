"""Operations in, their outcomes out: what the runtime is given of it."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from heartwheel.base.phrases import count
from heartwheel.engine.operations import OperationLimits
from heartwheel.engine.operations_job.advance import OperationsConfig, advance_operations
from heartwheel.engine.operations_job.packer import OperationPacker, pack_operations
from heartwheel.engine.runtime.driver.job import Job
from heartwheel.engine.runtime.driver.job_config import stream_config
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.engine.runtime.driver.query import read_topic
from heartwheel.engine.runtime.plugin import Advance
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.engine.runtime.state.output import Output
from heartwheel.engine.runtime.state.schema import PACKED
from heartwheel.settings import Settings
from heartwheel.settings.models import CheckpointSettings


class OperationsPlugin:
    """The plug-in of delayed operations; the methods are those of `Plugin`."""

    name = "heartwheel-operations"
    topic_key = "operations.topics.requests"
    skip_flag = "--operations"

    def own_settings(self, settings: Settings) -> Settings:
        """Return the settings with the operations' own checkpoint."""
        location = settings.operations.checkpoint_location
        checkpoint = CheckpointSettings(location=location, shared=settings.checkpoint.shared)
        return settings.model_copy(update={"checkpoint": checkpoint})

    def config(self, settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> OperationsConfig:
        """Return the configuration of a run."""
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

    def pack(self, spark: SparkSession, config: OperationsConfig) -> DataFrame:
        """Return the topic of operations, packed by shard before the shuffle."""
        packer = OperationPacker(
            config.source,
            config.shards,
            config.value_bytes_max,
            config.limits.timeout_ms_max,
            config.runs,
            partitions_max=max((count for count, _ in config.counts), default=0),
        )
        pack = partial(pack_operations, packer=packer, slots=config.slots)
        return read_topic(spark, config).coalesce(config.map_tasks).mapInArrow(pack, PACKED)

    def advance(self) -> Advance[OperationsConfig, Output]:
        """Return `advance_operations`."""
        return advance_operations

    def adapt_to(self, fault: Fault, config: OperationsConfig) -> OperationsConfig:  # noqa: ARG002 - the contract's
        """Change nothing: nothing that ends this job would be mended by it."""
        return config


def operations_job(settings: Settings) -> Job[OperationsConfig]:
    """Return the job of delayed operations.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """
    return Job(OperationsPlugin(), settings)


def line_of(batch: Progress) -> str:
    """Return the line about a batch, with its figures in the places of those of the heartbeat job."""
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
