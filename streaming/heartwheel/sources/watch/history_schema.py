"""The file of a history: its schema, its version, and the lock of the one process that writes it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.file_lock import locked_file

FORMAT: Final = 1
"""The version of the schema; a newer one is refused."""

_APPLICATION: Final = 0x48774873
_SCHEMA: Final = """
CREATE TABLE files (id INTEGER PRIMARY KEY, log TEXT NOT NULL, head TEXT NOT NULL DEFAULT '');
CREATE TABLE logs (log TEXT PRIMARY KEY, file INTEGER NOT NULL, position BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL,
    read_ms INTEGER NOT NULL,
    is_news INTEGER NOT NULL,
    fact BLOB NOT NULL
);
CREATE INDEX facts_of_files ON facts (file);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
"""
_LATER: Final = """
CREATE TABLE IF NOT EXISTS happenings (
    id INTEGER PRIMARY KEY,
    read_ms INTEGER NOT NULL,
    happening BLOB NOT NULL UNIQUE
);
"""
"""Tables that files of the same format may lack, as no release before needs them."""
MOVE_AWAY: Final = "move it away to start with an empty history"
"""What to do with a file that cannot be used."""
FREE_SPACE: Final = "free some space on its disk, and start again: nothing that was saved is lost"
"""What to do if the disk is full."""


class HistoryError(HeartwheelError):
    """A history cannot be used."""


def check_schema(db: sqlite3.Connection, path: Path, *, writes: bool) -> None:
    """Make the schema in a file that is empty; raise an error if a file has another one.

    Raises:
        HistoryError: it is not a history, or of a newer release.
    """
    db.execute("PRAGMA busy_timeout = 10000")
    db.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a crash of the machine loses the newest, all whole
    number = pragma(db, "user_version")
    if not number and writes and not pragma(db, "schema_version"):
        for name, value in (("auto_vacuum", 2), ("journal_mode", "WAL"), ("application_id", _APPLICATION)):
            db.execute(f"PRAGMA {name} = {value}")
        db.executescript(f"BEGIN;{_SCHEMA}PRAGMA user_version = {FORMAT};COMMIT;")
    elif pragma(db, "application_id") != _APPLICATION or not number:
        raise HistoryError(f"{path} is no history of heartwheel", hint="name another file with --history")
    elif number != FORMAT:
        words = f"{path} has format {number}, this release knows {FORMAT}"
        raise HistoryError(words, hint=f"use the release that wrote it, or {MOVE_AWAY}")
    if writes:
        db.executescript(_LATER)


def pragma(db: sqlite3.Connection, name: str) -> int:
    """Return the number that a pragma has."""
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Create a file that is missing, and lock it against other writers for the length of a `with` block."""
    hint = "stop it, or give this one a history of its own with --history"
    taken = HistoryError(f"another heartwheel watch writes {path}", hint=hint)
    with contextlib.ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            stack.enter_context(locked_file(path.with_name(f"{path.name}.lock"), taken))
        except OSError as error:
            raise HistoryError(f"cannot write {path}: {error.strerror}", hint="set watch.history_file") from None
        yield
