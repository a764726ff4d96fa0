"""Follow logs as they grow: several at once, through rotation, and the standard input."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.opened_log import STDIN, open_log
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.sources.explain.whole_lines import WholeLines

POLL_MS: Final = 200
"""How often files are read again, ms."""

SETTLE_MS: Final = 1_000
"""How long a fact waits for older facts of other logs, ms."""

_READ_BYTES: Final = 1 << 20


class FollowedFile:
    """A file that grows; when it is rotated, reading continues with the next one.

    Args:
        name: of the file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._stream = _opened(name)
        self._inode = os.fstat(self._stream.fileno()).st_ino

    def read(self) -> bytes:
        """Return the new bytes; none if there are none."""
        data = self._stream.read(_READ_BYTES)
        return data or self._after_rotation()

    def close(self) -> None:
        """Close it."""
        self._stream.close()

    def _after_rotation(self) -> bytes:
        try:
            now = Path(self.name).stat()
        except OSError:
            return b""  # between the two steps of a rotation
        if now.st_ino == self._inode and now.st_size >= self._stream.tell():
            return b""
        self._stream.close()
        self._stream, self._inode = _opened(self.name), now.st_ino
        return self._stream.read(_READ_BYTES)


class FollowedPipe:
    """The content of a pipe, read without waiting for more.

    Args:
        stream: the standard input.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._file = stream.fileno()
        self.ended = False

    def read(self) -> bytes:
        """Return the bytes that are there; none if there are none."""
        if self.ended or not select.select([self._file], [], [], 0)[0]:
            return b""
        data = os.read(self._file, _READ_BYTES)
        self.ended = not data
        return data

    def close(self) -> None:
        """Leave the standard input open: it is not ours to close."""


def follow(
    names: Sequence[str],
    readers: Sequence[FactReader],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[list[Fact]]:
    """Read logs to their end and then as they grow, in the order of time as far as they have been read.

    Args:
        names: of the logs.
        readers: of each.
        scanned: where to count.
        stdin: the stream for `-`.
        go_on: called before each look; `False` ends it.

    Returns:
        The facts whose turn it is since the last look; also an empty list, so that a caller can do something else.
    """
    tails = [
        _Tail(FollowedPipe(stdin) if name == STDIN else FollowedFile(name), reader)
        for name, reader in zip(names, readers, strict=True)
    ]
    waiting: list[tuple[Fact, float]] = []
    caught_up = False
    with ExitStack() as opened:
        for tail in tails:
            opened.callback(tail.source.close)
        while go_on():
            now = time.monotonic()
            read = 0
            for tail in tails:
                facts, size = tail.read(scanned)
                read += size
                waiting.extend((fact, now) for fact in facts)
            caught_up = caught_up or not read
            if not caught_up:
                continue  # what is there already is sorted as a whole
            if len(tails) == 1:
                ready, waiting = [fact for fact, _ in waiting], []
            else:
                ready = [fact for fact, since in waiting if now - since >= SETTLE_MS / 1000]
                waiting = [each for each in waiting if now - each[1] < SETTLE_MS / 1000]
            ready.sort(key=lambda fact: (fact.order_ms, fact.file, fact.line))
            yield ready
            if all(isinstance(tail.source, FollowedPipe) and tail.source.ended for tail in tails) and not waiting:
                return
            if not read:
                time.sleep(POLL_MS / 1000)


class _Tail:
    """A source's bytes, cut into lines."""

    def __init__(self, source: FollowedFile | FollowedPipe, reader: FactReader) -> None:
        self.source, self._reader = source, reader
        self._lines, self._line = WholeLines(), 1

    def read(self, scanned: Scanned) -> tuple[list[Fact], int]:
        data = self.source.read()
        ended = isinstance(self.source, FollowedPipe) and self.source.ended
        too_long = self._lines.too_long
        block = self._lines.add(data)
        scanned.too_long += self._lines.too_long - too_long
        if ended:
            block += self._lines.end()
        if not block:
            return [], len(data)
        before = scanned.lines
        facts = list(scan(io.BytesIO(block), self._reader, scanned, first_line=self._line))
        self._line += scanned.lines - before
        return facts, len(data)


def _opened(name: str) -> BinaryIO:
    stream = open_log(name, io.BytesIO())
    if not isinstance(stream, io.BufferedReader):
        stream.close()
        raise HeartwheelError(f"{name} cannot be followed: it is compressed or in UTF-16", hint="leave out --follow")
    return stream
