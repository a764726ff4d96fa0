"""The manifest of a checkpoint: what can never change while it lives, written beside Spark's own folders.

Spark would notice some of it late and in its own words, and some of it never: with another number of shards every group
would silently move to a shard that has never heard of it. So it is compared before the query starts: before Spark does
where the checkpoint is a folder, and as soon as there is a session where only Spark can reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self

import msgspec
from pyspark.sql import SparkSession

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.job_config import cores_of
from heartwheel.engine.runtime.driver.planned_batch import OFFSETS
from heartwheel.settings import Settings
from heartwheel.settings.locations import is_local, runs_elsewhere
from heartwheel.settings.models import EngineSettings

MANIFEST: Final = "heartwheel.json"
FORMAT: Final = 4
"""The version of the checkpoint's layout, and of the oldest state that is carried on. In the first, time came from the
driver's clock, and ticks were a source of Spark's; no release wrote the second, which had states in base64, and the
third, whose states knew the last tick of one run alone."""

RUNS: Final = "runs"
"""The folder of the runs of the ticker that the checkpoint was started with: ticks of others are no evidence."""

COUNTS: Final = "partitions"
"""The folder of how many partitions the topic had at the starts on the checkpoint, and from which batch on: by it a job
that has not finished its first batch knows where groups may have been before the topic grew, and one that does a batch
again knows of the topic what it knew then."""

_FEW_SHARDS: Final[int] = EngineSettings.model_fields["shards"].default
"""As many as a job has by itself: whoever sets more expects members for them."""

RUNS_MAX: Final = 64
"""How many runs of the ticker a checkpoint remembers: it may hold unread ticks of the newest few."""


class CheckpointError(HeartwheelError):
    """A checkpoint cannot be used; the hint says what to do."""


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """What a checkpoint was made with.

    Args:
        format: version of the checkpoint's layout.
    """

    format: int
    shards: int
    shuffle_partitions: int
    topic: str

    @classmethod
    def of(cls, settings: Settings, *, topic: str | None = None) -> Self:
        """Make the manifest of a new checkpoint; the topic that is read is that of the heartbeats if left out."""
        shards = settings.engine.shards
        return cls(
            format=FORMAT,
            shards=shards,
            shuffle_partitions=settings.spark.shuffle_partitions or _state_partitions(shards, settings.spark.master),
            topic=topic or settings.kafka.topics.heartbeats,
        )


def _state_partitions(shards: int, master: str) -> int:
    """Choose the state partitions of a new checkpoint: one a core, but one for two cores and few shards.

    Without a shuffle a quiet batch takes less time (`MapTasks`). With few members the second core is not missed. With a
    million it is: when all come or fall silent, one task would meet them all (docs/performance.md).
    """
    cores = cores_of(master)
    return 1 if cores <= 2 and shards <= _FEW_SHARDS else min(shards, cores)


def read_manifest(location: str, spark: SparkSession | None = None) -> Manifest | None:
    """Read the manifest of a checkpoint; `None` where there is no checkpoint yet.

    Args:
        spark: a session, without which only folders can be looked into.

    Raises:
        CheckpointError: the place holds something else, a newer release wrote it, or it cannot be reached.
    """
    store = open_store(location, spark)
    if store is None:
        raise CheckpointError(f"{location} is not a local folder", hint="copy it to one, while the job is stopped")
    return _read(store, location)


def open_checkpoint(
    settings: Settings,
    *,
    spark: SparkSession | None = None,
    topic: str | None = None,
    topic_key: str = "kafka.topics.heartbeats",
) -> Manifest:
    """Check that the configuration fits the checkpoint, and write the manifest of a new one.

    Args:
        spark: a session; without one a checkpoint that is no folder is not looked at, and taken for a new one until
            `Job.open` comes back with it.
        topic: the topic that is read; the heartbeats if left out.
        topic_key: the setting that names it.

    Raises:
        CheckpointError: with every value that differs, or why the place cannot be used.
    """
    location = settings.checkpoint.location
    if runs_elsewhere(settings.spark.master) and is_local(location) and not settings.checkpoint.shared:
        raise CheckpointError(
            f"the checkpoint {location} is a folder of one machine, and spark.master {settings.spark.master} runs on "
            "several",
            hint="name an address that all of them reach; set checkpoint.shared if it is the same folder everywhere",
        )
    wanted = Manifest.of(settings, topic=topic)
    store = open_store(location, spark)
    if store is None:
        return wanted
    found = _read(store, location)
    if found is None:
        _write(store, location, wanted)
        return wanted
    _require_same(settings, wanted, found, topic_key)
    return found


def _read(store: CheckpointStore, location: str) -> Manifest | None:
    try:
        data = store.read(MANIFEST)
        ours_or_new = data is not None or store.is_empty()
        manifest = None if data is None else msgspec.json.decode(data, type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(
            f"{location}/{MANIFEST} cannot be read: {error}",
            hint="restore it from a backup, or start on a new checkpoint",
        ) from None
    if not ours_or_new:
        raise CheckpointError(
            f"checkpoint.location is {location}, which is not empty and has no {MANIFEST}: it is not heartwheel's",
            hint="name an empty or a new folder, or restore the file from a backup",
        )
    if manifest is not None and manifest.format < FORMAT:
        raise CheckpointError(
            f"checkpoint {location} has format {manifest.format}, whose state cannot be carried on; "
            f"this release reads format {FORMAT}",
            hint="start on a new checkpoint.location, which reads the topic again; docs/upgrade.md says what is lost",
        )
    if manifest is not None and manifest.format > FORMAT:
        raise CheckpointError(
            f"checkpoint {location} has format {manifest.format}, this release reads up to {FORMAT}",
            hint="run the release that wrote it, or a newer one",
        )
    return manifest


class _Runs(msgspec.Struct):
    number: int = 0
    runs: tuple[str, ...] = ()


def add_run(location: str, run: str, spark: SparkSession | None) -> tuple[str, ...]:
    """Write down a run of the ticker, so that what it writes counts as evidence of an outage.

    Every start adds a file with all of them, as not every file system can replace one.

    Args:
        spark: a session, without which only folders can be written to.

    Returns:
        The newest runs, this one last.

    Raises:
        CheckpointError: the place cannot be read or written.
    """
    store = open_store(location, spark)
    if store is None:
        return (run,)
    try:
        data = store.newest(RUNS)
        before = _Runs() if data is None else msgspec.json.decode(data, type=_Runs)
        after = _Runs(before.number + 1, (*before.runs, run)[-RUNS_MAX:])
        store.write(f"{RUNS}/{after.number}", msgspec.json.encode(after))
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(
            f"checkpoint {location}: the runs of its ticker cannot be written down: {error}",
            hint="choose a place this user may write to, with space left",
        ) from None
    return after.runs


def add_count(
    location: str, count: int, spark: SparkSession | None, *, former: Callable[[], Sequence[int]] = tuple
) -> tuple[tuple[int, int], ...]:
    """Write down how many partitions the topic has, if it had fewer at every start before.

    That is known from the next batch that is planned on: one that is planned may have written rows without knowing it.

    Args:
        count: how many; 0 if that is not known.
        spark: a session, without which only folders can be written to.
        former: asked by a new checkpoint how many there were before, ascending; it is to read a topic that has grown.

    Returns:
        All counts that are known, ascending, each with the number of the first batch that knows it.

    Raises:
        CheckpointError: the place cannot be read or written.
    """
    store = open_store(location, spark)
    if store is None:
        return ((count, 0),) if count else ()
    try:
        data = store.newest(COUNTS)
        known = () if data is None else msgspec.json.decode(data, type=tuple[tuple[int, int], ...])
        if count > max((each for each, _ in known), default=0):
            planned = store.highest(OFFSETS)
            if not known and planned is None:
                known = tuple((each, 0) for each in former())
            known = (*known, (count, 0 if planned is None else planned + 1))
            store.write(f"{COUNTS}/{len(known)}", msgspec.json.encode(known))
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(
            f"checkpoint {location}: the partitions of its topic cannot be written down: {error}",
            hint="choose a place this user may write to, with space left",
        ) from None
    return known


def _require_same(settings: Settings, wanted: Manifest, found: Manifest, topic_key: str) -> None:
    differing = [
        f"{name} is {ours}, the checkpoint has {theirs}"
        for name, ours, theirs in (
            ("engine.shards", wanted.shards, found.shards),
            (topic_key, wanted.topic, found.topic),
        )
        if ours != theirs
    ]
    if settings.spark.shuffle_partitions not in {None, found.shuffle_partitions}:
        differing.append(
            f"spark.shuffle_partitions is {settings.spark.shuffle_partitions}, "
            f"the checkpoint has {found.shuffle_partitions}"
        )
    if differing:
        raise CheckpointError(
            f"checkpoint {settings.checkpoint.location} belongs to another configuration: {'; '.join(differing)}",
            hint="set the values back, or start on a new checkpoint.location, which reads the topic again",
        )


def _write(store: CheckpointStore, location: str, manifest: Manifest) -> None:
    try:
        store.write(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {location} cannot be written: {error.strerror or error}",
            hint="choose a place this user may write to, with space left",
        ) from None
