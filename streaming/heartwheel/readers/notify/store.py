"""The state that survives the process: a file of positions, incidents and outbox, and a file of dead letters.

Positions, incidents and outbox are written together, atomically. Committed offsets of a consumer group could hold only
the positions: after a crash they would be ahead of the incidents, which loses some, or behind, which repeats some.
"""

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
from heartwheel.readers.live.topic_rows import OutputTopic
from heartwheel.readers.notify.incidents import IncidentsSnapshot
from heartwheel.readers.notify.outbox import PendingMessage

FORMAT: Final = 1
"""The format of the file; a newer one is refused."""

DEAD_BYTES_MAX: Final = 4 << 20
"""Size at which the file of dead letters is moved aside, bytes; the one moved aside before is deleted."""


class Counts(msgspec.Struct, kw_only=True):
    """Counts since the file was created.

    Args:
        delivered: messages that the receiver took.
        failed: attempts that were or are to be repeated.
        refused: messages that the receiver will never take, now dead letters.
        given_up: messages that could not be delivered for too long, now dead letters.
        skipped: records that were deleted before they could be read.
    """

    delivered: int = 0
    failed: int = 0
    refused: int = 0
    given_up: int = 0
    skipped: int = 0


class NotifierState(msgspec.Struct, kw_only=True, rename={"snapshot": "pages"}):
    """The state that one process leaves for the next: the file `state.json`.

    Args:
        began_ms: where to begin reading partitions without a position, epoch ms: the time of the first start.
        positions: the next offset to read, by source and then by partition.
        snapshot: the incidents; `pages` in the file.
    """

    format: int = FORMAT
    began_ms: int = 0
    positions: dict[OutputTopic, dict[int, int]] = {}
    snapshot: IncidentsSnapshot = msgspec.field(default_factory=IncidentsSnapshot)
    waiting: list[PendingMessage] = []
    counts: Counts = msgspec.field(default_factory=Counts)


class StoreError(HeartwheelError):
    """The state folder or its file cannot be used."""


class Store:
    """The folder of a notifier's state, for one process at a time.

    Args:
        folder: created if it is missing, accessible only to its owner.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file = folder / "state.json"
        self._dead = folder / "dead-letters.jsonl"
        self._alive = folder / "alive"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for the length of a `with` block.

        Raises:
            StoreError: another process holds it, or it cannot be created.
        """
        hint = "stop it, or give this one a notify.state_dir of its own"
        taken = StoreError(f"another notifier uses {self.folder}", hint=hint)
        with contextlib.ExitStack() as stack:
            try:
                private_folder(self.folder)
                stack.enter_context(locked_file(self.folder / "lock", taken))
            except OSError as error:
                raise StoreError(f"cannot use {self.folder}: {error.strerror}", hint="set notify.state_dir") from None
            yield

    def load(self) -> NotifierState | None:
        """Return the saved state; `None` at the first start.

        Raises:
            StoreError: the file is damaged, or of a newer release.
        """
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            return None
        hint = "move the file away to start again: open incidents are forgotten, and reading begins at the end"
        try:
            found = msgspec.json.decode(data, type=_Format).format
            if found != FORMAT:
                raise StoreError(f"{self._file} has format {found}, this release knows {FORMAT}", hint=hint)
            return msgspec.json.decode(data, type=NotifierState)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self._file} is damaged: {error}", hint=hint) from None

    def save(self, state: NotifierState) -> None:
        """Replace the file atomically: after a crash it is the old one or the new one."""
        fresh = self._file.with_suffix(".new")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._file)

    def beat(self) -> None:
        """Touch the file `alive`: probes check its age."""
        self._alive.touch()

    def add_dead_letter(self, waiting: PendingMessage, *, now_ms: int) -> None:
        """Append a message that will not be delivered to the dead letters.

        Args:
            waiting: the message, with its last fault.
        """
        letter = {"at_ms": now_ms, "fault": waiting.fault, "attempts": waiting.attempts, "message": waiting.message}
        line = msgspec.json.encode(letter) + b"\n"
        if self._dead.exists() and self._dead.stat().st_size + len(line) > DEAD_BYTES_MAX:
            self._dead.replace(self._dead.with_suffix(".1.jsonl"))
        with self._dead.open("ab") as file:
            file.write(line)


class _Format(msgspec.Struct):
    format: int
