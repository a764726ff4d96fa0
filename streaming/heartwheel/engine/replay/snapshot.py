"""A saved replay, so that the rest of a log can be replayed another time."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.replay.epoch_lane import EpochLaneState
from heartwheel.engine.replay.evidence import LaneState
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import StateBlobError
from heartwheel.wire.verdicts import Verdict

FORMAT: Final = 2
"""The version that is written; a newer one is refused by name."""


class ReplaySnapshotError(HeartwheelError):
    """A replay cannot continue from the snapshot."""


class ShardSnapshot(msgspec.Struct):
    """One shard: the clock it was last advanced to (epoch ms, -1 if never), and its state as text."""

    clock_ms: int
    blob: str


class Snapshot(msgspec.Struct, kw_only=True):
    """A replay between two lines.

    Args:
        config: the rules' configuration.
        lines: how many lines were read.
        last_ms: the newest time that was read, epoch ms; -1 before the first.
        settled_ms: up to when all lines have been read and all verdicts returned, epoch ms; -1 if never.
        shards: the shards.
        lanes: the groups with recorded answers.
        others: the groups without recorded answers.
        epoch_lanes: the groups that have or had member epochs.
        verdicts: verdicts that were not returned yet.
        format: the version.
    """

    config: CoordinatorConfig
    lines: int
    last_ms: int
    settled_ms: int
    shards: list[ShardSnapshot]
    lanes: dict[str, LaneState]
    others: list[str]
    verdicts: list[Verdict]
    epoch_lanes: dict[str, EpochLaneState] = {}
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot."""
    return msgspec.json.encode(snapshot)


def read_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot.

    Raises:
        SnapshotError: it is no snapshot, is truncated, or was written by a newer version.
    """
    try:
        written = msgspec.json.decode(data, type=_Format).format
        if written > FORMAT:
            hint = "a newer release wrote it; resume it with that one"
            raise ReplaySnapshotError(
                f"the snapshot has format {written}, and this version reads up to {FORMAT}", hint=hint
            )
        return msgspec.json.decode(data, type=Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "name a file that `--snapshot-out` wrote"
        raise ReplaySnapshotError(f"this is not a whole snapshot of a replay: {error}", hint=hint) from None


def check_fits(snapshot: Snapshot, config: CoordinatorConfig, shards: int) -> None:
    """Check that a replay would continue under the same rules.

    Args:
        snapshot: the saved replay.
        config: the rules' configuration of the rest.
        shards: the number of shards of the rest.

    Raises:
        SnapshotError: it would not.
    """
    if len(snapshot.shards) != shards:
        hint = f"pass --shards {len(snapshot.shards)}"
        raise ReplaySnapshotError(f"the snapshot has {len(snapshot.shards)} shards, not {shards}", hint=hint)
    for name in CoordinatorConfig.__slots__:
        was, now = getattr(snapshot.config, name), getattr(config, name)
        if was != now:
            hint = f"pass --set coordinator.{name}={was}, or replay the whole log under the new value"
            raise ReplaySnapshotError(f"the snapshot was made with coordinator.{name} = {was}, not {now}", hint=hint)


def corrupt(error: StateBlobError) -> ReplaySnapshotError:
    """Return the error of a shard whose state inside a snapshot cannot be read."""
    return ReplaySnapshotError(f"a shard's state in the snapshot cannot be read: {error}")
