"""What a feeder did to its members, as JSON lines, to compare verdicts with.

One line a turn of a life: a member started, was killed, paused, resumed, left, returned, stalled, timed out. It is
written once the broker has stamped the member's last record, and carries that stamp. The last line of an orderly end is
the summary.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec


class Turn(enum.StrEnum):
    """A turn of a member's life."""

    STARTED = "started"
    KILLED = "killed"
    PAUSED = "paused"
    RESUMED = "resumed"
    LEFT = "left"
    RETURNED = "returned"
    STALLED = "stalled"
    POLL_TIMED_OUT = "poll timed out"


class LifeLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="life"):
    """One turn of one member's life.

    Args:
        turn: what happened.
        at_ms: when the feeder did it, by its own clock, epoch ms.
        last_beat_ms: broker's append time of the last record the member had sent by then, epoch ms; absent if the
            fate of that record is unknown.
        partition: where that record is, at `offset`.
    """

    turn: Turn
    group_id: str
    member_id: str
    session_timeout_ms: int
    at_ms: int
    last_beat_ms: int | None = None
    partition: int | None = None
    offset: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="summary"):
    """What a feed sent, and what became of it.

    Args:
        started_ms: begin of the feed by its own clock, epoch ms.
        sent: records handed to the client, bad ones included.
        acknowledged: those that the broker confirmed.
        unknown: those whose fate is unknown; they may be in the log all the same.
        garbage: bad records by kind.
        turns: turns of lives by name.
        behind_ms_max: how far the feeder fell behind its schedule, ms.
        errors: errors of the client by class.
    """

    started_ms: int
    ended_ms: int
    members: int
    sent: int
    acknowledged: int
    unknown: int
    garbage: dict[str, int] = {}
    turns: dict[str, int] = {}
    behind_ms_max: int = 0
    errors: dict[str, int] = {}


TruthLine = LifeLine | Summary

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(TruthLine).decode


class TruthWriter:
    """A truth file that grows; each line is on disk before the next, so that a killed feeder leaves a usable file."""

    def __init__(self, file: str | Path) -> None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        self._stream: IO[bytes] = Path(file).open("wb", buffering=0)  # noqa: SIM115 - closed by close

    def write(self, line: TruthLine) -> None:
        """Append one line."""
        self._stream.write(_encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def read_truth(file: str | Path) -> Iterator[TruthLine]:
    """Read a truth file line by line; a last line that was cut off by a crash is left out."""
    with Path(file).open("rb") as stream:
        for line in stream:
            if line.endswith(b"\n"):
                yield _decode(line)
