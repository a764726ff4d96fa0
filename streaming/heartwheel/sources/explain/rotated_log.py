"""The bytes of a log through rotations and restarts, with their position."""

from __future__ import annotations

import contextlib
import glob
import gzip
import hashlib
import os
import stat
import zlib
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from heartwheel.base.errors import HeartwheelError

READ_BYTES: Final = 1 << 18
"""Most bytes that one read takes: what is made of them is in memory at once, up to thirty times as large."""

LINE_BYTES_MAX: Final = 64 << 20
"""Longest line that is waited for; a longer one is cut."""

_START_BYTES: Final = 4_096

_PACKED: Final = frozenset({".gz", ".zip"})

_NOT_WHOLE: Final = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a truncated or damaged compressed file raises."""


class StampPosition(msgspec.Struct, frozen=True, array_like=True):
    """A position in the log of a container, which is asked for by time, to the second.

    Args:
        newest_ns: the newest time that was read, epoch ns.
        entries: how many entries were read that are not older than the second of that time.
        before: the text before the next line, as far as that line may need it.
    """

    newest_ns: int
    entries: int
    before: bytes = b""


class TailPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A position in a log.

    Args:
        inode: of the file.
        offset: of the next line's first byte.
        head: what identifies the file, empty if it is not known: a digest of its first line, which its copies have too,
            or the id of a container.
        stamps: the position in the log of a container; `None` for a file.
    """

    inode: int
    offset: int
    head: str = ""
    stamps: StampPosition | None = None


class RotatedLog:
    """The bytes of a log that grows and is rotated: the old file is read to its end, then the next ones.

    Rotated files are looked for next to the log, under names that begin with the log's. One that has been compressed to
    `.gz` is read like the original; the content of a `.zip` counts as lost. Where a log is copied and then truncated,
    the rest of its lines is read from the copy.

    Args:
        path: of the log.
        position: where to continue; without it, at the end of the log or at its start.
        from_begin: whether a new tail starts at the start of the log.
        hint: what to do if it cannot be opened.

    Attributes:
        at: where in its file the next byte is.
        head: digest of the file's first line; empty if it has none yet.
        is_next: whether the bytes that were read last are the first of another file.
        lost: whether bytes may be missing before them, because the file that was being read is gone.

    Raises:
        HeartwheelError: the log cannot be opened.
    """

    is_caught_up = True
    """Whether `read` returns what the log had at first: of a file it does, unlike of a connection."""

    is_cut = False
    """Whether text is missing until a connection is back: a file has none."""

    def __init__(
        self,
        path: Path,
        position: TailPosition | None = None,
        *,
        from_begin: bool = False,
        hint: str = "name a log that this user may read",
    ) -> None:
        self._path, self._hint = path, hint
        self.lost = self.is_next = False
        self._file = self._open(path) if position is None else self._find(position)
        if position is None:
            self._file.seek(0, os.SEEK_SET if from_begin else os.SEEK_END)
        elif not self.lost:
            self._file.seek(position.offset)
        self.at = self._file.tell()
        self.head, self._start = "", b""
        self._note_head()

    def read(self) -> bytes:
        """Return the new bytes, at most some megabytes; none if there are none."""
        self.lost = self.is_next = False
        data = b"" if self._was_replaced() else self._read()
        if not data and self._has_moved_on():
            data = b"" if self._was_replaced() else self._read()
            data = data or self._next()
        self.at += len(data)
        self._note_head()
        return data

    def before(self, size: int) -> bytes:
        """Return the bytes of the file before the next one, at most so many."""
        try:
            self._file.seek(max(0, self.at - size))
            data = self._file.read(min(size, self.at))
            self._file.seek(self.at)
        except _NOT_WHOLE:
            return b""
        return data

    def position(self, offset: int) -> TailPosition:
        """Return a position in the file that is read."""
        return TailPosition(os.fstat(self._file.fileno()).st_ino, offset, self.head)

    def behind(self) -> int:
        """Return how many bytes there are to read, in this file and in the log; files between them do not count."""
        try:
            here, now = os.fstat(self._file.fileno()), self._path.stat()
        except (OSError, ValueError):
            return 0
        rest = 0 if isinstance(self._file, gzip.GzipFile) else max(0, here.st_size - self.at)
        return rest if now.st_ino == here.st_ino else rest + now.st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _note_head(self) -> None:
        if not self.head:
            self.head, self._start = _head_of(self._file), _start_of(self._file)

    def _was_replaced(self) -> bool:
        """Return whether the file was truncated and written again, perhaps beyond the place that was read to."""
        is_plain = not isinstance(self._file, gzip.GzipFile)
        return bool(self.head) and is_plain and _start_of(self._file, len(self._start)) != self._start

    def _read(self) -> bytes:
        try:
            return self._file.read(READ_BYTES)
        except _NOT_WHOLE:
            self.lost = True
            return b""

    def _has_moved_on(self) -> bool:
        """Return whether the log is another file by now, or was truncated."""
        try:
            now = self._path.stat()
        except OSError:
            return False  # between the two steps of a rotation
        here = os.fstat(self._file.fileno())
        return now.st_ino != here.st_ino or now.st_size < self._file.tell() or self._was_replaced()

    def _next(self) -> bytes:
        """Continue with the file that followed the one that was read to its end."""
        here = os.fstat(self._file.fileno())
        if self._path.stat().st_ino == here.st_ino:
            copy = self._copy(self.at)
            if copy is not None:
                self._file.close()
                self._file = copy
                return self._read()
            self.lost = True  # it was truncated: what was not read before that is gone
            following = self._path
        else:
            following = self._following(here.st_ino, here.st_mtime_ns)
        self._file.close()
        self._file, self.at, self.head = self._open(following), 0, ""
        self.is_next = True
        return self._read()

    def _copy(self, offset: int) -> IO[bytes] | None:
        """Open the copy that was made of the log before it was truncated, at a position; `None` if there is none."""
        for path, status in _files(self._path):
            if status.st_ino != self._path.stat().st_ino and _is_copy(path, self.head):
                file = self._open(path)
                if file.seek(offset) == offset and (path.suffix == ".gz" or status.st_size >= offset):
                    return file
                file.close()
        return None

    def _following(self, inode: int, changed_ns: int) -> Path:
        """Return the file that was started when this one was closed; the log itself if no file is between them."""
        for each, status in _files(self._path):
            if status.st_ino == inode or status.st_mtime_ns < changed_ns or self._is_unfinished(each):
                continue
            if each.suffix == ".zip":
                self.lost = True
            elif each.suffix != ".gz" or not _is_copy(each, self.head):
                return each
        return self._path

    def _is_unfinished(self, path: Path) -> bool:
        """Return whether a file is still being compressed: until that is done the original exists, too."""
        original = path.with_suffix("")
        return path.suffix in _PACKED and original != self._path and original.exists()

    def _find(self, position: TailPosition) -> IO[bytes]:
        # Another file may have the inode of a removed one by now, so the first line has to be the same, too. A copy has
        # the first line and another inode.
        files = _files(self._path)
        named = [path for path, status in files if status.st_ino == position.inode]
        for path in [*named, *(path for path, _ in files if path not in named and position.head)]:
            if not position.head or _is_copy(path, position.head):
                return self._open(path)
        self.lost = True
        return self._open(self._path)

    def _open(self, path: Path) -> IO[bytes]:
        try:
            return _opened(path)
        except OSError as error:
            raise HeartwheelError(f"{path} cannot be read: {error.strerror}", hint=self._hint) from error


def find_copy(path: Path, head: str) -> Path | None:
    """Return the file of a log that has a first line with this digest; `None` if it is not there any more."""
    return next((each for each, _ in _files(path) if _is_copy(each, head)), None)


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _is_copy(path: Path, head: str) -> bool:
    """Return whether a file, compressed or not, has the first line with this digest."""
    try:
        with _opened(path) as file:
            return bool(head) and _head_of(file) == head
    except OSError:
        return False  # it is gone by now, or may not be read; the caller that needs it reports it


def _files(path: Path) -> list[tuple[Path, os.stat_result]]:
    """Return a log and its rotated files with their stat results, the oldest first."""
    found = []
    for each in path.parent.glob(f"{glob.escape(path.name)}*"):
        with contextlib.suppress(FileNotFoundError):  # a rotation renames, compresses and deletes meanwhile
            if stat.S_ISREG((status := each.stat()).st_mode):
                found.append((each, status))
    return sorted(found, key=lambda one: one[1].st_mtime_ns)


def _start_of(file: IO[bytes], size: int = _START_BYTES) -> bytes:
    """Return the first bytes of a plain file's first line, which change if it is truncated and written again."""
    return os.pread(file.fileno(), size, 0).partition(b"\n")[0]


def _head_of(file: IO[bytes]) -> str:
    """Return a digest of a file's first line, empty if it has no whole one; the file's position does not change."""
    at = file.tell()
    try:
        file.seek(0)
        line = file.readline(LINE_BYTES_MAX)
        file.seek(at)
    except _NOT_WHOLE:
        return ""
    return hashlib.blake2b(line, digest_size=16).hexdigest() if line.endswith(b"\n") else ""
