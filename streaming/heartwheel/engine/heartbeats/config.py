"""What the job of heartbeats needs to know, as plain values that travel to the workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config
from heartwheel.engine.runtime.driver.job_config import StreamConfig, stream_config
from heartwheel.engine.runtime.map.frames import is_bounded_by
from heartwheel.engine.shard.block_store import why_unreachable
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.settings import Settings
from heartwheel.settings.locations import folder_of, is_local


@dataclass(frozen=True, kw_only=True)
class JobConfig(StreamConfig):
    """The configuration of one run of the heartbeat job, in addition to what every job needs.

    Args:
        at_risk_count: members nearest to expiry that a status row names.
        wheel_size: buckets a level of the wheel.
        feeds: the feeds whose times are believed.
        block_location: the checkpoint whose block files workers use: a folder, from the root on, as they may start
            elsewhere, or a URI; empty for none.
        block_files_from: size of a shard's ids, details and fingerprints from which on they are in files, bytes; 0 for
            never.
        repeats: whether heartbeats that shards were given lately may come without their bytes.
    """

    at_risk_count: int = 10
    tick_ms: int = 25
    wheel_size: int = 20
    coordinator: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    limits: ShardLimits = field(default_factory=ShardLimits)
    feeds: tuple[str, ...] = ()
    block_location: str = ""
    block_files_from: int = 0
    repeats: bool = True
    long_records: bool = False


WITHOUT_BLOCK_FILES_HINT: Final = "docs/state.md, or engine.block_files_from=0B"


def needs_object_store(settings: Settings) -> bool:
    """Return whether a job is to have block files that are not in a folder."""
    return not is_local(settings.checkpoint.location) and settings.engine.block_files_from_bytes > 0


def without_block_files(settings: Settings) -> str:
    """Return why a job that is to have block files can have none; empty if it can, or is to have none."""
    return why_unreachable(settings.checkpoint.location) if needs_object_store(settings) else ""


def job_config(settings: Settings, *, shuffle_partitions: int, runs: tuple[str, ...] = ()) -> JobConfig:
    """Shape the settings for the job.

    Args:
        shuffle_partitions: of the checkpoint, where it exists, else of the settings.
        runs: the runs of the ticker that the checkpoint knows.
    """
    engine, location = settings.engine, settings.checkpoint.location
    return JobConfig(
        **stream_config(settings, shuffle_partitions=shuffle_partitions, runs=runs),
        source=settings.kafka.topics.heartbeats,
        topics=settings.kafka.topics.model_dump(),
        at_risk_count=engine.at_risk_count,
        tick_ms=settings.wheel.tick_ms,
        wheel_size=settings.wheel.size,
        coordinator=coordinator_config(settings.coordinator.model_dump(by_alias=False)),
        limits=ShardLimits(
            members_max=engine.members_per_shard_max,
            members_per_group_max=engine.members_per_group_max,
            groups_max=engine.groups_per_shard_max,
            verdicts_max=engine.output_per_batch_max,
            state_bytes_max=engine.state_bytes_max,
        ),
        feeds=tuple(engine.feeds.split(",")) if engine.feeds else (),
        block_location=str(folder_of(location).absolute()) if is_local(location) else location.rstrip("/"),
        # What is in files already is read by workers all the same, and brought back into the rows.
        block_files_from=0 if without_block_files(settings) else engine.block_files_from_bytes,
        long_records=is_bounded_by(settings.spark.conf),
    )
