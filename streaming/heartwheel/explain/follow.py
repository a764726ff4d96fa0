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

from heartwheel.errors import HeartwheelError
from heartwheel.explain.facts import Fact
from heartwheel.explain.opened_log import STDIN, open_log
from heartwheel.explain.scan import FactReader, Scanned, scan
from heartwheel.explain.whole_lines import WholeLines

POLL_MS: Final = 200
"""How often files are looked at, ms."""

SETTLE_MS: Final = 1_000
"""How long a fact waits for those of other logs that are older, ms."""

_READ_BYTES: Final = 1 << 20


class FollowedFile:
    """Read what a file has grown by, and go on with the next one when it was rotated.

    Args:
        name: of the file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._stream = _opened(name)
        self._inode = os.fstat(self._stream.fileno()).st_ino

    def read(self) -> bytes:
        """Read what is new; nothing if nothing is."""
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
    """Read what is in a pipe without waiting for more.

    Args:
        stream: the standard input.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._file = stream.fileno()
        self.ended = False

    def read(self) -> bytes:
        """Read what is there; nothing if nothing is."""
        if self.ended or not select.select([self._file], [], [], 0)[0]:
            return b""
        data = os.read(self._file, _READ_BYTES)
        self.ended = not data
        return data

    def close(self) -> None:
        """Leave it open: it is not ours."""


def follow(
    names: Sequence[str],
    readers: Sequence[FactReader],
    scanned: Scanned,
    *,
    stdin: BinaryIO,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[list[Fact]]:
    """Read logs to their end and then as they grow, in the order of time as far as they have come.

    Args:
        names: of the logs.
        readers: of each.
        scanned: where to count.
        stdin: what `-` stands for.
        go_on: asked before each look whether to go on.

    Returns:
        What has become certain since the last look: the facts whose turn it is; also an empty list, so that a caller
        can do something else.
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
    """Cut what comes from a source into lines."""

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
