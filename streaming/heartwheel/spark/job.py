"""What an engine can run: a job has a checkpoint, a pace, and a query that is started to catch up and then to live."""

from __future__ import annotations

from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.settings import Settings
from heartwheel.settings.places import is_local
from heartwheel.spark import query as queries
from heartwheel.spark.checkpoint import Manifest, open_checkpoint
from heartwheel.spark.job_config import JobConfig, StreamConfig, job_config


class Job(Protocol):
    """One job with its checkpoint opened."""

    @property
    def settings(self) -> Settings:
        """The checked configuration, with the checkpoint of this job in it."""
        ...

    @property
    def manifest(self) -> Manifest:
        """What the checkpoint was made with."""
        ...

    @property
    def config(self) -> StreamConfig:
        """The configuration of the run, as the checkpoint has it."""
        ...

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint where that takes a session.

        Raises:
            CheckpointError: the checkpoint does not fit the configuration.
        """
        ...

    def start(
        self, spark: SparkSession, *, held: bool, records_max: int | None = None, **trigger: Any
    ) -> StreamingQuery:
        """Start the query.

        Args:
            spark: the session.
            held: whether the job catches up with a backlog.
            records_max: most records a batch.
            trigger: the argument of `DataStreamWriter.trigger`.
        """
        ...


class HeartbeatJob:
    """Heartbeats in, member expirations and rebalance triggers out.

    Args:
        settings: the checked configuration.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._open(None)

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint, as `Job.open` has it."""
        if not is_local(self.settings.checkpoint.location):
            self._open(spark)

    def _open(self, spark: SparkSession | None) -> None:
        self.manifest = open_checkpoint(self.settings, spark=spark)
        self.config: JobConfig = job_config(self.settings, shuffle_partitions=self.manifest.shuffle_partitions)

    def start(
        self, spark: SparkSession, *, held: bool, records_max: int | None = None, **trigger: Any
    ) -> StreamingQuery:
        """Start the query, as `Job.start` has it."""
        return queries.start(spark, self.config, held=held, records_max=records_max, **trigger)
