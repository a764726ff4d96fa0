"""Tail a log through rotations and restarts: whole lines, each with the place it stands at."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import stat
import zlib
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

import msgspec

from heartwheel.errors import HeartwheelError

READ_BYTES: Final = 8 << 20
"""Most bytes that one look reads."""

LINE_BYTES_MAX: Final = 64 << 20
"""Longest line that is waited for; a longer one is cut."""

_PACKED: Final = frozenset({".gz", ".zip"})

_NOT_WHOLE: Final = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a compressed file raises that was cut off or damaged."""


class Position(msgspec.Struct, frozen=True):
    """Where a tail stands.

    Args:
        inode: of the file.
        offset: of the next line's first byte.
        head: digest of the file's first line, by which it and its copies are known; empty if that is not known.
    """

    inode: int
    offset: int
    head: str = ""


class Line(NamedTuple):
    """One whole line.

    Args:
        text: without its end.
        offset: of its first byte in its file.
    """

    text: bytes
    offset: int


class LogTail:
    """A log that grows and is rotated: the old file is read to its end, then the next ones.

    A rotated file is looked for beside the log, under names that begin with the log's. One that was compressed
    meanwhile (`.gz`) is read as it was; what a `.zip` holds counts as lost.

    Args:
        path: of the log.
        position: where to go on; left out, at the end of the log, or at its begin.
        from_begin: whether a new tail starts at the begin of the log.

    Attributes:
        lost: whether lines may be missing before the next one: the file that was to be read on with is gone.

    Raises:
        HeartwheelError: the log cannot be opened.
    """

    def __init__(self, path: Path, position: Position | None = None, *, from_begin: bool = False) -> None:
        self._path = path
        self._rest = b""
        self.lost = False
        self._file = self._open(path) if position is None else self._find(position)
        if position is None:
            self._file.seek(0, os.SEEK_SET if from_begin else os.SEEK_END)
        elif not self.lost:
            self._file.seek(position.offset)
        self._at = self._file.tell()
        self._head = ""

    @property
    def position(self) -> Position:
        """Where the next line begins."""
        self._head = self._head or _head_of(self._file)
        return Position(os.fstat(self._file.fileno()).st_ino, self._at, self._head)

    def read(self) -> list[Line]:
        """Read the whole lines that are new, some megabytes at most; none if nothing is new."""
        self.lost = False
        data = self._read()
        if not data and self._has_moved_on():
            data = self._read() or self._next()
        return self._cut(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        try:
            return self._file.read(READ_BYTES)
        except _NOT_WHOLE:
            self.lost = True
            return b""

    def _cut(self, data: bytes) -> list[Line]:
        *whole, rest = (self._rest + data).split(b"\n")
        lines = []
        for text in whole:
            lines.append(Line(text, self._at))
            self._at += len(text) + 1
        self._rest = rest
        if len(rest) > LINE_BYTES_MAX:
            self._at, self._rest = self._at + len(rest), b""
        return lines

    def _has_moved_on(self) -> bool:
        """Tell whether the log is another file by now, or was cut."""
        try:
            now = self._path.stat()
        except OSError:
            return False  # between the two steps of a rotation
        here = os.fstat(self._file.fileno())
        return now.st_ino != here.st_ino or now.st_size < self._file.tell()

    def _next(self) -> bytes:
        """Go on with the file that followed the one that was read to its end."""
        here = os.fstat(self._file.fileno())
        if self._path.stat().st_ino == here.st_ino:
            self.lost = True  # it was cut: what was written before that and not read is gone
            following = self._path
        else:
            following = self._following(here.st_ino, here.st_mtime_ns)
        self._file.close()
        self._file, self._rest, self._at, self._head = self._open(following), b"", 0, ""
        return self._read()

    def _following(self, inode: int, changed_ns: int) -> Path:
        """Return the file that was begun when this one was closed; the log itself if none is between."""
        head = _head_of(self._file)
        for each, status in _files(self._path):
            if status.st_ino == inode or status.st_mtime_ns < changed_ns or self._is_unfinished(each):
                continue
            if each.suffix == ".zip":
                self.lost = True
            elif each.suffix != ".gz" or not self._is_copy(each, head):
                return each
        return self._path

    def _is_unfinished(self, path: Path) -> bool:
        """Tell whether a file is being compressed: until that is done the original is beside it."""
        original = path.with_suffix("")
        return path.suffix in _PACKED and original != self._path and original.exists()

    def _is_copy(self, path: Path, head: str) -> bool:
        """Tell whether a file, compressed or not, is that of which the first line is known."""
        try:
            with self._open(path) as file:
                return bool(head) and _head_of(file) == head
        except HeartwheelError:
            return False  # it is gone by now, or may not be read: whoever needs it says so

    def _find(self, position: Position) -> IO[bytes]:
        for path, status in _files(self._path):
            is_named = status.st_ino == position.inode
            # The inode of a file that is gone may be another one's by now, so the first line has to be the same, too.
            if (is_named and not position.head) or (
                (is_named or path.suffix == ".gz") and self._is_copy(path, position.head)
            ):
                return self._open(path)
        self.lost = True
        return self._open(self._path)

    @staticmethod
    def _open(path: Path) -> IO[bytes]:
        try:
            return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
        except OSError as error:
            raise HeartwheelError(
                f"{path} cannot be read: {error.strerror}",
                hint="name the file of the broker's logger kafka.request.logger; docs/tap.md shows how to switch it on",
            ) from error


def _files(path: Path) -> list[tuple[Path, os.stat_result]]:
    """List a log and its rotated files with what they are, the oldest first."""
    found = []
    for each in path.parent.glob(f"{path.name}*"):
        with contextlib.suppress(FileNotFoundError):  # a rotation renames, compresses and deletes meanwhile
            if stat.S_ISREG((status := each.stat()).st_mode):
                found.append((each, status))
    return sorted(found, key=lambda one: one[1].st_mtime_ns)


def _head_of(file: IO[bytes]) -> str:
    """Return a digest of a file's first line, empty if it has no whole one; the file stands where it stood."""
    at = file.tell()
    try:
        file.seek(0)
        line = file.readline(LINE_BYTES_MAX)
        file.seek(at)
    except _NOT_WHOLE:
        return ""
    return hashlib.blake2b(line, digest_size=16).hexdigest() if line.endswith(b"\n") else ""
