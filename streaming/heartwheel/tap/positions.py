"""Positions: how far a tap has come, in a file that survives it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from heartwheel.errors import HeartwheelError
from heartwheel.private import private_folder
from heartwheel.tap.gaps import Pause
from heartwheel.tap.holds import Hold
from heartwheel.tap.log_tail import Position

_FILE: Final = "positions.json"
_LOCK: Final = "lock"

_encode = msgspec.json.Encoder().encode


class Positions(msgspec.Struct):
    """How far a tap has come.

    Args:
        feed: its name.
        request_log: where it stands in the request log.
        broker_log: where it stands in the broker's own log, if it reads one.
        ends: the next offset of each partition of the heartbeat topic, when all before was written.
        since_ms: since when it has missed nothing, epoch ms; -1 if it has read no line.
        newest_ms: time of the newest line it has read, epoch ms; likewise.
        holds: of groups, as they were then.
        rebalance_ms: how long joins of groups may wait, ms, as `Holds` knows it.
        connections: to the broker, those that were used last.
        odd_ms: when a client had an id with a line break last, epoch ms; -1 if none had.
        form: a line of the request logger without its content; empty if none is known.
        pause: after which it is not known yet whether the broker was restarted.
    """

    feed: str
    request_log: Position
    broker_log: Position | None = None
    ends: dict[int, int] = {}
    since_ms: int = -1
    newest_ms: int = -1
    holds: dict[str, Hold] = {}
    rebalance_ms: dict[str, int] = {}
    connections: list[str] = []
    pause: Pause | None = None
    odd_ms: int = -1
    form: str = ""


class PositionsFolder:
    """The folder of one tap.

    Args:
        folder: made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other taps away from the folder.

        Raises:
            HeartwheelError: another tap runs on it.
        """
        private_folder(self._folder)
        with (self._folder / _LOCK).open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise HeartwheelError(
                    f"another tap runs on {self._folder}", hint="stop it, or name another folder with --positions"
                ) from None
            yield

    def load(self, feed: str) -> Positions | None:
        """Read the positions; `None` if there are none.

        Raises:
            HeartwheelError: they cannot be read, or are those of another feed.
        """
        file = self._folder / _FILE
        try:
            found = msgspec.json.decode(file.read_bytes(), type=Positions)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            hint = "without it the tap begins anew, and what came meanwhile is not known; remove it to do so"
            raise HeartwheelError(f"{file} cannot be read: {error}", hint=hint) from error
        if found.feed != feed:
            raise HeartwheelError(
                f"{file} is of the feed {found.feed}, not of {feed}", hint="give each feed a folder of its own"
            )
        return found

    def save(self, positions: Positions) -> None:
        """Write the positions, so that a crash leaves the old ones or the new ones."""
        new = self._folder / f"{_FILE}.new"
        with new.open("wb") as file:
            file.write(_encode(positions))
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._folder / _FILE)
