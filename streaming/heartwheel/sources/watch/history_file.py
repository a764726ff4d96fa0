"""The history: the facts of brokers' logs in an SQLite file, with the positions up to which the logs were read.

Facts are kept, not events: the meaning of a line depends on lines that come later, and a later release may explain it
better. So a history is explained as a log is, and gives the same events. Facts and positions are written in one
transaction: after a crash the file has both or neither, and no line is lost or counted twice.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from heartwheel.sources.explain.causes.happening import HAPPENINGS_MAX, Happening
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.follow import FollowedPosition
from heartwheel.sources.explain.rotated_log import find_copy
from heartwheel.sources.explain.scanned import ScannedCounts
from heartwheel.sources.watch.history_schema import FREE_SPACE, MOVE_AWAY, HistoryError, check_schema, locked, pragma
from heartwheel.sources.watch.history_times import FactSlice, encoded_facts, find_slices, newest_ms, oldest_ms

_TRIM_SHARE: Final = 10
_TRIM_AT_ONCE: Final = 10_000
_SCANNED: Final = "scanned"


class KeptFact(NamedTuple):
    """A fact of the history: its number, which rises, whether it was read as its log grew, and the fact."""

    number: int
    is_news: bool
    fact: Fact


class SavedLog(NamedTuple):
    """Where a log continues: the number of its file, and the position in it."""

    file: int
    position: FollowedPosition


class HistoryFile:
    """A history, opened by the one process that writes it or by any that read it; a context manager.

    Args:
        path: of the file.
        writes: whether this process writes it; a file that is missing is made, for its owner alone.

    Raises:
        HistoryError: another process writes it, it is not a history or of a newer release, or it cannot be opened.
    """

    def __init__(self, path: Path, *, writes: bool) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._stack = contextlib.ExitStack()
        with contextlib.ExitStack() as opening, self._errors():
            if writes:
                opening.enter_context(locked(path))
            elif not path.is_file():
                raise HistoryError(f"there is no history {path}", hint="heartwheel watch --history writes one")
            mode = "rw" if writes else "ro"
            address = f"{path.absolute().as_uri()}?mode={mode}"
            self._db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            opening.callback(self._db.close)
            check_schema(self._db, path, writes=writes)
            self._stack = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite into ours; one thread at a time uses the connection."""
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            hints = {sqlite3.SQLITE_FULL: FREE_SPACE, sqlite3.SQLITE_NOTADB: "name another file with --history"}
            hint = hints.get(getattr(error, "sqlite_errorcode", -1), MOVE_AWAY)
            raise HistoryError(f"the history {self.path} cannot be used: {error}", hint=hint) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:  # SQLite has ended it if the disk is full
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def add_file(self, log: str) -> int:
        """Add a file of a log, and return its number."""
        with self._transaction():
            return int(self._db.execute("INSERT INTO files (log) VALUES (?)", (log,)).lastrowid or 0)

    def saved(self, log: str) -> SavedLog | None:
        """Return where a log continues; `None` if the history has nothing of it."""
        with self._errors():
            row = self._db.execute("SELECT file, position FROM logs WHERE log = ?", (log,)).fetchone()
        return None if row is None else SavedLog(row[0], msgspec.msgpack.decode(row[1], type=FollowedPosition))

    def save(
        self,
        parts: Sequence[tuple[Sequence[Fact], bool]],
        logs: Mapping[str, SavedLog],
        scanned: ScannedCounts,
        *,
        now_ms: int,
    ) -> int:
        """Save facts together with the positions after them, in one transaction.

        Args:
            parts: new facts of a log each, and whether they were read as it grew.
            logs: where each log continues.
            scanned: what was counted up to there.
            now_ms: wall clock, epoch ms.

        Returns:
            The number of the newest fact.
        """
        encode = msgspec.msgpack.Encoder().encode
        with self._transaction():
            self._db.executemany(
                "INSERT INTO facts (file, read_ms, is_news, fact) VALUES (?, ?, ?, ?)",
                ((fact.file, now_ms, is_news, encode(fact)) for facts, is_news in parts for fact in facts),
            )
            for log, (file, position) in logs.items():
                self._db.execute("REPLACE INTO logs VALUES (?, ?, ?)", (log, file, encode(position)))
                self._db.execute("UPDATE files SET head = ? WHERE id = ?", (position.tail.head, file))
            self._db.execute("REPLACE INTO state VALUES (?, ?)", (_SCANNED, encode(scanned)))
            return self._newest()

    def _newest(self) -> int:
        found = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'facts'").fetchone()
        return int(found[0]) if found else 0

    @property
    def newest(self) -> int:
        """The number of the newest fact; 0 before the first."""
        with self._errors():
            return self._newest()

    def first_news(self, since: int) -> int | None:
        """Return the number of the first fact after another that was read as its log grew; `None` if there is none."""
        with self._errors():
            found = self._db.execute("SELECT MIN(id) FROM facts WHERE id > ? AND is_news", (since,)).fetchone()
        return None if found[0] is None else int(found[0])

    def put(self, name: str, value: bytes) -> None:
        """Save a value under a name."""
        with self._transaction():
            self._db.execute("REPLACE INTO state VALUES (?, ?)", (name, value))

    def state(self, name: str) -> bytes | None:
        """Return what was saved under a name."""
        with self._errors():
            row = self._db.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def scanned(self) -> ScannedCounts:
        """Return what was counted while the logs were read."""
        found = self.state(_SCANNED)
        return ScannedCounts() if found is None else msgspec.msgpack.decode(found, type=ScannedCounts)

    def facts(self, since: int = 0) -> Iterator[KeptFact]:
        """Return the facts in the order in which they were read, as they are at this moment.

        Args:
            since: only those with a higher number.
        """
        decode = msgspec.msgpack.Decoder(Fact).decode
        with self._errors():
            rows = self._db.execute("SELECT id, is_news, fact FROM facts WHERE id > ? ORDER BY id", (since,))
            for number, is_news, data in rows:
                yield KeptFact(number, bool(is_news), decode(data))

    def newest_ms(self, until: int) -> int | None:
        """Return the newest time of a line among the facts up to a number, epoch ms; `None` if there are none."""
        with self._errors():
            return newest_ms(self._db, until)

    def oldest_ms(self) -> int:
        """Return the time of the oldest line among the facts, epoch ms; 0 if there are none."""
        with self._errors():
            return oldest_ms(self._db)

    def slices(self, from_ms: int, to_ms: int, group_id: str = "") -> list[FactSlice]:
        """Return where the facts of a time are; of one group, if it is named, and of brokers."""
        with self._errors():
            return find_slices(self._db, from_ms, to_ms, group_id)

    def facts_of(self, part: FactSlice, group_id: str = "") -> Iterator[Fact]:
        """Return the facts of a slice, in the order of time; those of one group, if it is named, and of brokers."""
        decode = msgspec.msgpack.Decoder(Fact).decode
        with self._errors():
            for data in encoded_facts(self._db, part, group_id):
                fact = decode(data)
                if not group_id or fact.group_id in {"", group_id}:
                    yield fact

    def keep_happenings(self, happenings: Sequence[Happening], *, now_ms: int) -> None:
        """Keep what happened to pods and machines; what it has already stays as it is."""
        encode = msgspec.msgpack.Encoder().encode
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO happenings (read_ms, happening) VALUES (?, ?)",
                [(now_ms, encode(each)) for each in happenings],
            )

    def happenings(self, wanted: Callable[[bytes], bool] = bool) -> list[Happening]:
        """Return what happened to pods and machines, as far as it is kept.

        Args:
            wanted: whether an encoded happening is wanted; the others are not decoded.
        """
        decode = msgspec.msgpack.Decoder(Happening).decode
        with self._errors():
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'happenings'").fetchone():
                return []  # an earlier release has written it
            rows = self._db.execute("SELECT happening FROM happenings ORDER BY id")
            return [decode(data) for (data,) in rows if wanted(data)]

    def files(self) -> dict[int, str]:
        """Return the names of the files by their numbers: log by log, each from the oldest on.

        A file that was rotated has its present name, if it is still beside its log.
        """
        order = "SELECT id, log, head FROM files AS f ORDER BY (SELECT MIN(id) FROM files WHERE log = f.log), id"
        with self._errors():
            present = {row[0] for row in self._db.execute("SELECT file FROM logs")}
            files = self._db.execute(order).fetchall()
        return {file: log if file in present else str(find_copy(Path(log), head) or log) for file, log, head in files}

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read the history in a `with` block as it is at the first read, whatever is written meanwhile."""
        with self._errors():
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    def trim(self, *, before_ms: int, bytes_max: int) -> int:
        """Remove what was read before a time, and the oldest facts until the file is small enough.

        The time of reading decides, not that of the line: a line with a wrong time keeps no place and removes none.

        Args:
            before_ms: epoch ms.
            bytes_max: the size of the file, bytes.

        Returns:
            How many facts were removed.
        """
        removed = 0
        with self._transaction():
            # Facts lie in the order of reading: only those at the begin are looked at, and not all of them each time.
            old = "DELETE FROM facts WHERE id < ? AND read_ms < ?"
            while (some := self._db.execute(old, (self._first() + _TRIM_AT_ONCE, before_ms)).rowcount) > 0:
                removed += some
            while self._bytes() > bytes_max and (first := self._first()):
                until = first + max(1, (self._newest() - first) // _TRIM_SHARE)
                removed += self._db.execute("DELETE FROM facts WHERE id <= ?", (until,)).rowcount
            newest = "SELECT COALESCE(MAX(id), 0) FROM happenings"
            old = f"DELETE FROM happenings WHERE read_ms < ? OR id <= ({newest}) - ?"  # noqa: S608 - no text of others
            self._db.execute(old, (before_ms, HAPPENINGS_MAX))
            if removed:
                self._db.execute(
                    "DELETE FROM files WHERE id NOT IN (SELECT file FROM logs)"
                    " AND NOT EXISTS (SELECT 1 FROM facts WHERE file = files.id)"
                )
        if removed:
            with self._errors():
                self._db.execute("PRAGMA incremental_vacuum").fetchall()
        return removed

    @property
    def is_trimmed(self) -> bool:
        """Whether the oldest facts were removed."""
        with self._errors():
            return self._newest() > 0 and self._first() != 1

    def _first(self) -> int:
        return int(self._db.execute("SELECT COALESCE(MIN(id), 0) FROM facts").fetchone()[0])

    def _bytes(self) -> int:
        return (pragma(self._db, "page_count") - pragma(self._db, "freelist_count")) * pragma(self._db, "page_size")
