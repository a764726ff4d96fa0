"""The manifest of a checkpoint: what can never change while it lives, written beside Spark's own folders.

Spark would notice some of it late and in its own words, and some of it never: with another number of shards every group
would silently move to a shard that has never heard of it. So it is compared before Spark starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import msgspec

from heartwheel.errors import HeartwheelError
from heartwheel.settings import Settings
from heartwheel.spark.job import cores_of

MANIFEST: Final = "heartwheel.json"
FORMAT: Final = 1
"""The version of the checkpoint's layout; state blobs have a version of their own."""


class CheckpointError(HeartwheelError):
    """Tell that a checkpoint can not be used, and what to do."""


class Manifest(msgspec.Struct, kw_only=True, frozen=True):
    """Hold what a checkpoint was made with.

    Args:
        format: version of the checkpoint's layout.
        shards: coordinator partitions.
        shuffle_partitions: partitions of Spark's state.
        topic: the topic that is read.
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
            shuffle_partitions=settings.spark.shuffle_partitions or min(shards, cores_of(settings.spark.master)),
            topic=topic or settings.kafka.topics.heartbeats,
        )


def is_local(location: str) -> bool:
    """Tell whether a checkpoint lies in a folder of this machine."""
    return "://" not in location


def read_manifest(location: str) -> Manifest | None:
    """Read the manifest of a checkpoint; `None` where there is no checkpoint yet.

    Raises:
        CheckpointError: the folder holds something else, or a newer release wrote it.
    """
    folder = Path(location)
    path = folder / MANIFEST
    if not path.exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise CheckpointError(
                f"checkpoint.location is {location}, which is not empty and has no {MANIFEST}: it is not heartwheel's",
                hint="name an empty or a new folder, or restore the file from a backup",
            )
        return None
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(
            f"{path} can not be read: {error}", hint="restore it from a backup, or start on a new checkpoint"
        ) from None
    if manifest.format > FORMAT:
        raise CheckpointError(
            f"checkpoint {location} has format {manifest.format}, this release reads up to {FORMAT}",
            hint="run the release that wrote it, or a newer one",
        )
    return manifest


def open_checkpoint(
    settings: Settings, *, topic: str | None = None, topic_key: str = "kafka.topics.heartbeats"
) -> Manifest:
    """Check that the configuration fits the checkpoint, and write the manifest of a new one.

    Args:
        settings: the checked configuration.
        topic: the topic that is read; the heartbeats if left out.
        topic_key: the setting that names it.

    Raises:
        CheckpointError: with every value that differs, or why the folder can not be used.
    """
    location = settings.checkpoint.location
    wanted = Manifest.of(settings, topic=topic)
    found = read_manifest(location)
    if found is None:
        _write(Path(location), wanted)
        return wanted
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
            f"checkpoint {location} belongs to another configuration: {'; '.join(differing)}",
            hint="set the values back, or start on a new checkpoint.location, which reads the topic again",
        )
    return found


def _write(folder: Path, manifest: Manifest) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f".{MANIFEST}.tmp"
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        draft.replace(folder / MANIFEST)
    except OSError as error:
        raise CheckpointError(
            f"checkpoint {folder} can not be written: {error.strerror or error}",
            hint="choose a folder this user may write to, with space left",
        ) from None
