"""A replay written down, so that the rest of a log can be replayed another time."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.errors import HeartwheelError
from heartwheel.replay.epoch_lane import EpochLaneState
from heartwheel.replay.evidence import LaneState
from heartwheel.shard import StateBlobError
from heartwheel.wire.verdicts import Verdict

FORMAT: Final = 2
"""The version that is written; a newer one is refused by name."""


class SnapshotError(HeartwheelError):
    """The snapshot cannot be carried on from."""


class ShardState(msgspec.Struct):
    """One shard: the clock it was last advanced to (epoch ms, -1 if never), and its state as text."""

    clock_ms: int
    blob: str


class Snapshot(msgspec.Struct, kw_only=True):
    """A replay between two lines.

    Args:
        config: the rules' configuration.
        lines: how many lines were read.
        last_ms: the newest time that was read, epoch ms; -1 before the first.
        settled_ms: up to where all lines have been read and all verdicts were handed out, epoch ms; -1 if nowhere.
        shards: the shards.
        lanes: the groups with recorded answers.
        others: the groups without.
        epoch_lanes: the groups that go by member epochs, or have done so.
        verdicts: what was decided and not handed out yet.
        format: the version.
    """

    config: CoordinatorConfig
    lines: int
    last_ms: int
    settled_ms: int
    shards: list[ShardState]
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
        SnapshotError: it is not one, not whole, or was written by a newer version.
    """
    try:
        written = msgspec.json.decode(data, type=_Format).format
        if written > FORMAT:
            hint = "a newer release wrote it; resume it with that one"
            raise SnapshotError(f"the snapshot has format {written}, and this version reads up to {FORMAT}", hint=hint)
        return msgspec.json.decode(data, type=Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "name a file that `--snapshot-out` wrote"
        raise SnapshotError(f"this is not a whole snapshot of a replay: {error}", hint=hint) from None


def check_fits(snapshot: Snapshot, config: CoordinatorConfig, shards: int) -> None:
    """Check that a replay would carry on under the same rules.

    Args:
        snapshot: what was written down.
        config: the rules' configuration of the rest.
        shards: the number of shards of the rest.

    Raises:
        SnapshotError: it would not.
    """
    if len(snapshot.shards) != shards:
        hint = f"pass --shards {len(snapshot.shards)}"
        raise SnapshotError(f"the snapshot has {len(snapshot.shards)} shards, not {shards}", hint=hint)
    for name in CoordinatorConfig.__slots__:
        was, now = getattr(snapshot.config, name), getattr(config, name)
        if was != now:
            hint = f"pass --set coordinator.{name}={was}, or replay the whole log under the new value"
            raise SnapshotError(f"the snapshot was made with coordinator.{name} = {was}, not {now}", hint=hint)


def corrupt(error: StateBlobError) -> SnapshotError:
    """Return the error of a shard whose state inside a snapshot cannot be read."""
    return SnapshotError(f"a shard's state in the snapshot cannot be read: {error}")
