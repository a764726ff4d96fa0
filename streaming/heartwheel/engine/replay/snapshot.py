"""A saved replay, so that the rest of a log can be replayed another time."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.replay.epoch_lane import EpochLaneState
from heartwheel.engine.replay.evidence import LaneState
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.wire.verdicts import Verdict

FORMAT: Final = 3
"""The version that is written and read; another one is refused by name."""


class ReplaySnapshotError(HeartwheelError):
    """A replay cannot continue from the snapshot."""


class Snapshot(msgspec.Struct):
    """A replay between two lines.

    Args:
        last_ms: the newest time that was read, epoch ms; -1 before the first.
        settled_ms: up to when all lines have been read and all verdicts returned, epoch ms; -1 if never.
        lanes: the other groups.
        epoch_lanes: the groups that have or had member epochs.
        verdicts: verdicts that were not returned yet.
        is_answered: whether a line had a recorded answer.
    """

    config: CoordinatorConfig
    lines: int = 0
    last_ms: int = -1
    settled_ms: int = -1
    lanes: dict[str, LaneState] = {}
    epoch_lanes: dict[str, EpochLaneState] = {}
    verdicts: list[Verdict] = []
    is_answered: bool = False
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int


def write_snapshot(snapshot: Snapshot) -> bytes:
    """Encode a snapshot."""
    return msgspec.json.encode(snapshot)


def read_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot.

    Raises:
        ReplaySnapshotError: it is no snapshot, is truncated, or was written by a version with another format.
    """
    try:
        written = msgspec.json.decode(data, type=_Format).format
        if written != FORMAT:
            hint = "another release wrote it: resume it with that one, or replay the whole log"
            raise ReplaySnapshotError(f"the snapshot has format {written}, and this version reads {FORMAT}", hint=hint)
        return msgspec.json.decode(data, type=Snapshot)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = "name a file that `--snapshot-out` wrote"
        raise ReplaySnapshotError(f"this is not a whole snapshot of a replay: {error}", hint=hint) from None


def check_fits(snapshot: Snapshot, config: CoordinatorConfig) -> None:
    """Check that a replay would continue under the same rules.

    Args:
        config: the rules' configuration of the rest.

    Raises:
        ReplaySnapshotError: it would not.
    """
    for name in CoordinatorConfig.__slots__:
        was, now = getattr(snapshot.config, name), getattr(config, name)
        if was != now:
            hint = f"pass --set coordinator.{name}={was}, or replay the whole log under the new value"
            raise ReplaySnapshotError(f"the snapshot was made with coordinator.{name} = {was}, not {now}", hint=hint)
