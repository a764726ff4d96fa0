"""Positions: how far a tap has read, kept in a file for the next start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.file_lock import locked_file
from heartwheel.base.private import private_folder
from heartwheel.sources.explain.rotated_log import TailPosition
from heartwheel.sources.tap.gaps import QuietTime
from heartwheel.sources.tap.holds import Hold

_FILE: Final = "positions.json"
_LOCK: Final = "lock"

_encode = msgspec.json.Encoder().encode


class Positions(msgspec.Struct):
    """The state of a tap between two starts.

    Args:
        broker_log: position in the broker's own log, if it reads one.
        end: the next offset of the feeds' partition, when all events before were written; -1 if nothing was written.
        since_ms: since when it has missed nothing, epoch ms; -1 if it has read no line.
        newest_ms: time of the newest line it has read, epoch ms; -1 if it has read no line.
        rebalance_ms: how long joins of groups may wait, ms, as `Holds` knows it.
        connections: to the broker, those that were used last.
        odd_ms: when a client last sent a text with a line break, epoch ms; -1 if none did.
        form: a line of the request logger without its content; empty if none is known.
        pause: the pause for which it is not yet known whether the broker was restarted.
    """

    feed: str
    request_log: TailPosition
    broker_log: TailPosition | None = None
    end: int = -1
    since_ms: int = -1
    newest_ms: int = -1
    holds: dict[str, Hold] = {}
    rebalance_ms: dict[str, int] = {}
    connections: list[str] = []
    pause: QuietTime | None = None
    odd_ms: int = -1
    form: str = ""


class PositionsFolder:
    """The folder of one tap.

    Args:
        folder: created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against other taps.

        Raises:
            HeartwheelError: another tap runs on it.
        """
        private_folder(self._folder)
        hint = "stop it, or name another folder with --positions"
        taken = HeartwheelError(f"another tap runs on {self._folder}", hint=hint)
        with locked_file(self._folder / _LOCK, taken):
            yield

    def load(self, feed: str) -> Positions | None:
        """Read the positions; `None` if there are none.

        Raises:
            HeartwheelError: they cannot be read, or belong to another feed.
        """
        file = self._folder / _FILE
        try:
            found = msgspec.json.decode(file.read_bytes(), type=Positions)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            hint = "remove it to start without it; then nothing is known of the time since the last run"
            raise HeartwheelError(f"{file} cannot be read: {error}", hint=hint) from error
        if found.feed != feed:
            raise HeartwheelError(
                f"{file} is of the feed {found.feed}, not of {feed}", hint="give each feed a folder of its own"
            )
        return found

    def save(self, positions: Positions) -> None:
        """Write the positions atomically: after a crash the file has the old ones or the new ones."""
        new = self._folder / f"{_FILE}.new"
        with new.open("wb") as file:
            file.write(_encode(positions))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._folder / _FILE)
