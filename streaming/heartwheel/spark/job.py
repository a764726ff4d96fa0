"""What an engine can run: a job has a checkpoint, a pace, a ticker's run, and a query."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.settings import Settings
from heartwheel.settings.locations import is_local
from heartwheel.spark import query as queries
from heartwheel.spark.checkpoint import Manifest, add_count, add_run, open_checkpoint
from heartwheel.spark.faults import LONG_RECORD, UNKNOWN_HEARTBEAT, Fault
from heartwheel.spark.growth import former_counts
from heartwheel.spark.job_config import JobConfig, StreamConfig, job_config
from heartwheel.spark.ticker import new_run


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
    def run(self) -> str:
        """The run of the ticker: one for the life of the process."""
        ...

    @property
    def config(self) -> StreamConfig:
        """The configuration of the run, as the checkpoint has it."""
        ...

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint where that takes a session, and write down the run of the ticker.

        Raises:
            CheckpointError: the checkpoint does not fit the configuration.
        """
        ...

    def start(self, spark: SparkSession, *, partitions: int = 0, **trigger: Any) -> StreamingQuery:
        """Start the query.

        Args:
            spark: the session.
            partitions: how many the topic has; 0 if that is not known.
            trigger: the argument of `DataStreamWriter.trigger`.
        """
        ...

    def heed(self, fault: Fault) -> None:
        """Change what the next start of the query does, after what has ended the last one."""
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
        self.run = new_run()
        self._take(open_checkpoint(settings), ())

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint, as `Job.open` has it."""
        if not is_local(self.settings.checkpoint.location):
            self._take(open_checkpoint(self.settings, spark=spark), ())
        self._take(self.manifest, add_run(self.settings.checkpoint.location, self.run, spark))

    def _take(self, manifest: Manifest, runs: tuple[str, ...]) -> None:
        self.manifest = manifest
        self.config: JobConfig = job_config(self.settings, shuffle_partitions=manifest.shuffle_partitions, runs=runs)

    def start(self, spark: SparkSession, *, partitions: int = 0, **trigger: Any) -> StreamingQuery:
        """Start the query, as `Job.start` has it."""
        before = partial(former_counts, self.settings, self.config.source, partitions)
        reads_on = self.config.starting_offsets == "latest"
        counts = add_count(self.settings.checkpoint.location, partitions, spark, former=tuple if reads_on else before)
        return queries.start(spark, replace(self.config, counts=counts), **trigger)

    def heed(self, fault: Fault) -> None:
        """Send all heartbeats with their bytes, or take records of any length, from now on, as `Job.heed` has it.

        Of a heartbeat that was not known without its bytes the next start alone would mend it; but whoever can fill the
        memory of a shard could do so again and again.
        """
        if fault.message.startswith(UNKNOWN_HEARTBEAT):
            self.config = replace(self.config, repeats=False)
        if fault.message.startswith(LONG_RECORD):
            self.config = replace(self.config, long_records=True)
