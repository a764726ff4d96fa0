"""What the job needs to know, as plain values that travel to the workers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.kafka.security import java_properties
from heartwheel.settings import Settings
from heartwheel.settings.locations import runs_elsewhere


@dataclass(frozen=True, kw_only=True)
class StreamConfig:
    """What every job needs: where it reads, where it writes, and its pace.

    Args:
        checkpoint: where offsets and state are kept.
        kafka_options: client properties for Spark's source and sink, each with the prefix `kafka.`.
        source: the topic it reads.
        topics: real name by logical name.
        starting_offsets: `earliest` or `latest`, for a new checkpoint.
        fail_on_data_loss: whether unread records that are gone from the topic end the job.
        slots: the grouping key of each shard.
        map_tasks: most tasks that read and pack the topic (`MapTasks`).
        outage_min_ms: shortest gap in a partition that may be an outage, ms.
        runs: the runs of the ticker that the checkpoint knows, this one last.
        counts: how many partitions the topic had at the starts on this checkpoint, ever more, and each time from which
            batch on that was known.
        versions: how many versions of the state Spark keeps.
        value_bytes_max: longest value that is decoded, bytes. long_records: whether keys and values may be longer than
        `heartwheel.engine.runtime.map.frames` takes without counting bytes.
    """

    checkpoint: str
    kafka_options: Mapping[str, str]
    source: str
    topics: Mapping[str, str]
    starting_offsets: str = "earliest"
    fail_on_data_loss: bool = True
    slots: tuple[int, ...]
    map_tasks: int = 2
    trigger_interval_ms: int = 200
    tick_interval_ms: int = 200
    outage_min_ms: int = 3_000
    runs: tuple[str, ...] = ()
    records_max: int = 1_000_000
    counts: tuple[tuple[int, int], ...] = ()
    versions: int = 10
    value_bytes_max: int = 1 << 20
    long_records: bool = True

    def counts_in(self, batch: int | None) -> tuple[int, ...]:
        """Return how many partitions were known when a batch was first run, and how many before, ascending.

        A batch that is done again knows no more than it did: else it would contradict the rows that it has written.

        Args:
            batch: its number; all of them if left out.
        """
        return tuple(count for count, first in self.counts if batch is None or first <= batch)

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return len(self.slots)


def cores_of(master: str) -> int:
    """Return the number of cores that a local master uses; 1 for a cluster, whose cores are unknown before it runs."""
    if runs_elsewhere(master):
        return 1
    if master.startswith("local[") and not master.startswith("local[*"):
        return int(master[6:].rstrip("]").split(",")[0])
    if master == "local":
        return 1
    return os.cpu_count() or 1


def stream_config(settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> dict[str, Any]:
    """Shape what every job needs, but its source and its topics, as arguments of its configuration.

    Args:
        shuffle_partitions: of the checkpoint, where it exists, else of the settings.
        runs: the runs of the ticker that the checkpoint knows.
    """
    engine, kafka = settings.engine, settings.kafka
    options = {"bootstrap.servers": kafka.bootstrap_servers, **java_properties(kafka.client)}
    return {
        "checkpoint": settings.checkpoint.location,
        "kafka_options": {f"kafka.{name}": value for name, value in options.items()},
        "starting_offsets": kafka.starting_offsets,
        "fail_on_data_loss": kafka.fail_on_data_loss,
        "slots": slots_of(engine.shards, shuffle_partitions),
        "map_tasks": max(shuffle_partitions, cores_of(settings.spark.master)),
        "trigger_interval_ms": engine.trigger_interval_ms,
        "tick_interval_ms": engine.tick_interval_ms,
        "outage_min_ms": engine.outage_min_ms,
        "runs": runs,
        "records_max": engine.catch_up_max_records,
        "value_bytes_max": engine.value_bytes_max,
    }
