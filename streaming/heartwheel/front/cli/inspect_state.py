"""Read the content of a checkpoint: its manifest, the last committed batch, and every shard's state."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.manager import AnyGroup
from heartwheel.engine.runtime.driver.checkpoint import CheckpointError, Manifest, read_manifest
from heartwheel.engine.runtime.driver.given_spark import stop_session
from heartwheel.engine.runtime.driver.session import session_conf, start_session
from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.engine.runtime.state.schema import STATE_VERSION
from heartwheel.engine.shard import Shard, ShardLimits, StateBlobError
from heartwheel.engine.shard.block_files import BlockFiles
from heartwheel.settings import Settings
from heartwheel.settings.locations import folder_of, is_local

_RESTORE: Final = "restore the checkpoint from a backup, or start on a new one"
_NO_LIMITS: Final = ShardLimits()


class ShardView(NamedTuple):
    """The state of one shard after a batch.

    Args:
        last_trigger_ms: timestamp of its last live trigger, epoch ms; -1 if there was none.
        clock_ms: up to where its timers have fired, epoch ms; -1 if they never did.
    """

    number: int
    last_trigger_ms: int
    clock_ms: int
    state_bytes: int
    shard: Shard

    def groups(self) -> list[AnyGroup]:
        """Return its groups with their members, by name."""
        return sorted((group for group, _ in self.shard.dump()), key=lambda group: group.group_id)


class CheckpointView(NamedTuple):
    """The content of a checkpoint.

    Args:
        manifest: the settings that it was created with.
        batch_id: the last batch that was committed; -1 if there is none.
        shards: their state after that batch, in order.
    """

    location: str
    manifest: Manifest
    batch_id: int
    shards: Sequence[ShardView]


def read_checkpoint(settings: Settings, log_file: Path) -> CheckpointView:
    """Read the settings' checkpoint; write nothing.

    Raises:
        CheckpointError: there is none, it is not ours, it cannot be read, or a newer release wrote it.
    """
    location = settings.checkpoint.location
    manifest, batch_id = open_manifest(location)
    if batch_id < 0:
        return CheckpointView(location, manifest, batch_id, ())
    rows = _state_rows(settings, log_file)
    shard_of_slot = {slot: shard for shard, slot in enumerate(slots_of(manifest.shards, manifest.shuffle_partitions))}
    views = sorted(decode_shard(shard_of_slot[slot], state, folder_of(location)) for slot, state in rows)
    return CheckpointView(location, manifest, batch_id, views)


def open_manifest(location: str) -> tuple[Manifest, int]:
    """Read the settings that a checkpoint was created with, and the last committed batch; -1 if there is none.

    Raises:
        CheckpointError: there is none, or it cannot be read.
    """
    if not is_local(location):
        raise CheckpointError(f"{location} is not a local folder", hint="copy it to one, while the job is stopped")
    manifest = read_manifest(location)
    if manifest is None:
        raise CheckpointError(
            f"there is no checkpoint at {location}", hint="name one: heartwheel inspect --checkpoint DIR"
        )
    batches = (file.name for file in (folder_of(location) / "commits").glob("*"))
    return manifest, max((int(name) for name in batches if name.isdecimal()), default=-1)


def decode_shard(index: int, state: tuple[int, int, int, int, int, str], checkpoint: Path) -> ShardView:
    """Decode the state row of one shard.

    Args:
        state: the row, in the order of `STATE_SCHEMA`.
        checkpoint: the folder that has the block files.

    Raises:
        CheckpointError: it cannot be read, or a newer release wrote it.
    """
    version, last_trigger_ms, clock_ms, _, _, blob = state
    if version != STATE_VERSION:
        raise CheckpointError(
            f"the state of shard {index} has version {version}, this release reads version {STATE_VERSION}",
            hint="run the release that wrote it",
        )
    try:
        files = BlockFiles(str(checkpoint), index)
        shard = Shard(coordinator=CoordinatorConfig(), limits=_NO_LIMITS, blob=blob, files=files)
    except StateBlobError as error:
        raise CheckpointError(f"the state of shard {index} cannot be read: {error}", hint=_RESTORE) from error
    return ShardView(index, last_trigger_ms, clock_ms, len(blob) + shard.filed_bytes, shard)


def _state_rows(settings: Settings, log_file: Path) -> list[tuple[int, tuple[Any, ...]]]:
    location = settings.checkpoint.location
    # Spark takes the path's URI for a path, and so finds no folder with a space in its name: it gets a link to it.
    with (
        session_on_one_core(settings, log_file) as spark,
        tempfile.TemporaryDirectory(prefix="heartwheel-inspect-") as folder,
    ):
        link = Path(folder, "checkpoint")
        link.symlink_to(folder_of(location).absolute())
        return _collect(spark, link, location, log_file)


@contextmanager
def session_on_one_core(settings: Settings, log_file: Path) -> Iterator[SparkSession]:
    """Start Spark for a command that looks at a checkpoint, and stop it at the end."""
    on_one_core = settings.spark.model_copy(update={"master": "local[1]"})
    conf = session_conf(settings.model_copy(update={"spark": on_one_core}), [], shuffle_partitions=1, log_file=log_file)
    spark = start_session({name: value for name, value in conf.items() if value}, log_file=log_file)
    try:
        yield spark
    finally:
        stop_session(spark)


def _collect(spark: SparkSession, folder: Path, location: str, log_file: Path) -> list[tuple[int, tuple[Any, ...]]]:
    # The first access starts the coordinator of state stores, which the reader needs.
    _ = spark.streams
    try:
        frame = spark.read.format("statestore").load(str(folder))
        rows = frame.select("key.slot", "value.groupState").collect()
    except (PySparkException, Py4JError) as error:
        words = _cause(error).partition("\n")[0]
        raise CheckpointError(
            f"the state in {location} cannot be read: {words}", hint=f"{_RESTORE}; the details are in {log_file}"
        ) from error
    return [(int(slot), tuple(state)) for slot, state in rows]


def _cause(error: Exception) -> str:
    """Return the innermost cause of a Java error, which is more specific than the layers around it."""
    causes = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return causes[-1].removeprefix("Caused by: ") if causes else str(error)
