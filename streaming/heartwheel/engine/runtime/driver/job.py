"""A job that an engine can run: a plug-in with its checkpoint opened."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, Generic

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.driver.checkpoint import Manifest, add_count, add_run, open_checkpoint
from heartwheel.engine.runtime.driver.growth import former_counts
from heartwheel.engine.runtime.driver.ticker import new_run
from heartwheel.engine.runtime.plugin import ConfigT, Plugin
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.engine.runtime.state.output import frame_of_output
from heartwheel.engine.runtime.state.state_function import state_function
from heartwheel.settings import Settings
from heartwheel.settings.locations import is_local


class Job(Generic[ConfigT]):
    """One job with its checkpoint opened.

    Args:
        plugin: what it does with its topic.

    Attributes:
        settings: the configuration, with the checkpoint of this job in it.
        manifest: what the checkpoint was made with.
        config: the configuration of the run, as the checkpoint has it.
        run: the run of the ticker: one for the life of the process.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """

    config: ConfigT

    def __init__(self, plugin: Plugin[ConfigT], settings: Settings) -> None:
        self._plugin = plugin
        self.settings = plugin.own_settings(settings)
        self.run = new_run()
        self._open(None)

    @property
    def skip_flag(self) -> str:
        """The flag of `heartwheel skip` by which a person means this job; empty for none."""
        return self._plugin.skip_flag

    def open(self, spark: SparkSession) -> None:
        """Open the checkpoint where that takes a session, and write down the run of the ticker.

        Raises:
            CheckpointError: the checkpoint does not fit the configuration.
        """
        if not is_local(self.settings.checkpoint.location):
            self._open(spark)
        self._take(self.manifest, add_run(self.settings.checkpoint.location, self.run, spark))

    def start(
        self, spark: SparkSession, *, partitions: int = 0, map_tasks: int | None = None, **trigger: Any
    ) -> StreamingQuery:
        """Start the query.

        Args:
            partitions: how many the topic has; 0 if that is not known.
            map_tasks: how many tasks read it; those of the configuration if left out.
            trigger: the argument of `DataStreamWriter.trigger`.
        """
        before = partial(former_counts, self.settings, self.config.source, partitions)
        reads_on = self.config.starting_offsets == "latest"
        counts = add_count(self.settings.checkpoint.location, partitions, spark, former=tuple if reads_on else before)
        versions = int(str(spark.conf.get("spark.sql.streaming.minBatchesToRetain")))
        map_tasks = map_tasks or self.config.map_tasks
        config = replace(self.config, counts=counts, versions=versions, map_tasks=map_tasks)
        return start_query(self._plugin, spark, config, **trigger)

    def adapt_to(self, fault: Fault) -> None:
        """Change what the next start of the query does, after what has ended the last one."""
        self.config = self._plugin.adapt_to(fault, self.config)

    def _open(self, spark: SparkSession | None) -> None:
        key = self._plugin.topic_key
        manifest = open_checkpoint(self.settings, spark=spark, topic=attrgetter(key)(self.settings), topic_key=key)
        self._take(manifest, ())

    def _take(self, manifest: Manifest, runs: tuple[str, ...]) -> None:
        self.manifest = manifest
        self.config = self._plugin.config(self.settings, shuffle_partitions=manifest.shuffle_partitions, runs=runs)


def start_query(plugin: Plugin[ConfigT], spark: SparkSession, config: ConfigT, **trigger: Any) -> StreamingQuery:
    """Start the query of a plug-in.

    Args:
        trigger: the argument of `DataStreamWriter.trigger`.
    """
    function = state_function(config, plugin.advance(), partial(frame_of_output, topics=config.topics))
    frame = queries.advanced(plugin.pack(spark, config), function)
    return queries.write(frame, config, name=plugin.name, **trigger)
