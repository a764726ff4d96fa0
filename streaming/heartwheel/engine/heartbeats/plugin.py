"""Heartbeats in, member expirations and rebalance triggers out: what the runtime is given of it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import WITHOUT_BLOCK_FILES_HINT, JobConfig, job_config, without_block_files
from heartwheel.engine.heartbeats.packer import pack_batches
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.runtime.driver.job import Job
from heartwheel.engine.runtime.driver.query import read_topic, short_records
from heartwheel.engine.runtime.driver.running_batch import running_batch
from heartwheel.engine.runtime.map.frames import bound_batches
from heartwheel.engine.runtime.plugin import Advance
from heartwheel.engine.runtime.state.faults import LONG_RECORD, UNKNOWN_HEARTBEAT, Fault
from heartwheel.engine.runtime.state.output import Output
from heartwheel.engine.runtime.state.schema import PACKED
from heartwheel.settings import Settings

_log = logging.getLogger(__name__)


class HeartbeatPlugin:
    """The plug-in of heartbeats; the methods are those of `Plugin`."""

    name = "heartwheel"
    topic_key = "kafka.topics.heartbeats"
    skip_flag = ""

    def own_settings(self, settings: Settings) -> Settings:
        """Return the settings as they are: `checkpoint` is this job's."""
        return settings

    def config(self, settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> JobConfig:
        """Return the configuration of a run."""
        return job_config(settings, shuffle_partitions=shuffle_partitions, runs=runs)

    def pack(self, spark: SparkSession, config: JobConfig) -> DataFrame:
        """Return the heartbeat topic, packed by shard before the shuffle.

        A Python worker costs tens of milliseconds a task and batch, so the source's partitions are gathered into as
        many tasks as there are cores; each is still read from its start to its end, in order.
        """
        pack = partial(
            _pack,
            topic=config.source,
            slots=config.slots,
            value_bytes_max=config.value_bytes_max,
            runs=config.runs,
            outage_min_ms=config.outage_min_ms,
            feeds=config.feeds,
            query=secrets.token_hex(8) if config.repeats else None,
        )
        bound_batches(spark, by_bytes=config.long_records)
        records = read_topic(spark, config)
        if not config.long_records:
            records = short_records(records)
        return records.coalesce(config.map_tasks).mapInArrow(pack, PACKED)

    def advance(self) -> Advance[JobConfig, Output]:
        """Return `advance_shard`."""
        return advance_shard

    def adapt_to(self, fault: Fault, config: JobConfig) -> JobConfig:
        """Send all heartbeats with their bytes, or take records of any length, from now on.

        Of a heartbeat that was not known without its bytes the next start alone would mend it; but a client that can
        fill the memory of a shard could do so again and again.
        """
        if fault.message.startswith(UNKNOWN_HEARTBEAT):
            config = replace(config, repeats=False)
        if fault.message.startswith(LONG_RECORD):
            config = replace(config, long_records=True)
        return config


def heartbeat_job(settings: Settings) -> Job[JobConfig]:
    """Return the job of heartbeats.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """
    if reason := without_block_files(settings):
        _log.warning(
            "all state stays in its rows, without block files, as Python does not reach %s: %s; hint: %s",
            settings.checkpoint.location,
            reason,
            WITHOUT_BLOCK_FILES_HINT,
        )
    return Job(HeartbeatPlugin(), settings)


def _pack(batches: Iterator[pa.RecordBatch], *, query: str | None, **arguments: Any) -> Iterator[pa.RecordBatch]:
    return pack_batches(batches, **arguments, batch_of=None if query is None else _batch_of(query))


def _batch_of(query: str) -> BatchOf | None:
    """Return the batch that this task belongs to; `None` if Spark does not say it."""
    number = running_batch()
    return None if number is None else BatchOf(query, number)
