"""Follow logs as they grow: several at once, through rotation, and the standard input."""

from __future__ import annotations

import io
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO, Final, Protocol, cast

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.sources.explain.broken_lines import WINDOW_BYTES
from heartwheel.sources.explain.fact_reader import FactReader, ReaderState
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.opened_log import STDIN, open_log
from heartwheel.sources.explain.rotated_log import RotatedLog, TailPosition
from heartwheel.sources.explain.scan import NEAR_BYTES, HeldLines
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.explain.whole_lines import WholeLines

POLL_MS: Final = 200
"""How often files are read again, ms."""

HOLD_MS: Final = 300
"""How long a line waits for the text after it, ms: a client may have broken a message into several lines."""

SETTLE_MS: Final = 1_000
"""How long a fact waits for older facts of other logs, ms."""


class FollowedSource(Protocol):
    """A log that grows: a file, or a pipe."""

    @property
    def at(self) -> int:
        """Where in its file the next byte is."""
        ...

    @property
    def is_next(self) -> bool:
        """Whether the bytes that were read last are the first of another file."""
        ...

    @property
    def is_cut(self) -> bool:
        """Whether text that was written may be missing behind those bytes until a connection is back."""
        ...

    def read(self) -> bytes:
        """Return the new bytes; none if there are none."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class ResumedSource(FollowedSource, Protocol):
    """A log that can be read on by another process: a file, or the log of a container."""

    head: str
    lost: bool

    @property
    def is_caught_up(self) -> bool:
        """Whether what the log had when it was opened is read, or at hand for `read`."""
        ...

    def before(self, size: int) -> bytes:
        """Return the bytes before the next one, at most so many."""
        ...

    def position(self, offset: int) -> TailPosition:
        """Return a position in the file that is read."""
        ...

    def behind(self) -> int:
        """Return how many bytes there are to read, as far as that is known; from any thread."""
        ...


class FollowedPipe:
    """The content of a pipe, read without waiting for more."""

    is_next = is_cut = False

    def __init__(self, stream: BinaryIO) -> None:
        self._file = stream.fileno()
        self.at = 0
        self.ended = False

    def read(self) -> bytes:
        """Return the bytes that are there; none if there are none."""
        if self.ended or not select.select([self._file], [], [], 0)[0]:
            return b""
        data = os.read(self._file, 1 << 20)
        self.at += len(data)
        self.ended = not data
        return data

    def close(self) -> None:
        """Leave the standard input open: it is not ours to close."""


class FollowedPosition(msgspec.Struct, frozen=True):
    """A position in a followed log.

    Args:
        tail: where the next line is.
        line: its number, from 1.
        reader: what the lines before it have shown.
    """

    tail: TailPosition
    line: int
    reader: ReaderState


class LogFollower:
    """The facts of a log as it grows; a line is read when the text after it has had time to come.

    Args:
        source: its bytes.
        reader_of: makes the parser of the next file's lines.
        scanned: where to count.
        position: where the lines continue; by default they are the first of their file.
        before: the text before them in that file.
    """

    def __init__(
        self,
        source: FollowedSource,
        reader_of: Callable[[], FactReader],
        scanned: Scanned,
        position: FollowedPosition | None = None,
        before: bytes = b"",
    ) -> None:
        self.source, self._reader_of, self._scanned = source, reader_of, scanned
        self._reader = reader_of()
        if position is not None:
            self._reader.restore(position.reader)
        self._lines = WholeLines()
        self._held = HeldLines(self._reader, scanned, first_line=position.line if position else 1, before=before)
        self._end = source.at
        self._came: deque[tuple[float, int]] = deque()
        """When bytes came, and where they end."""

    @property
    def has_ended(self) -> bool:
        """Whether it is a pipe that has ended."""
        return isinstance(self.source, FollowedPipe) and self.source.ended

    @property
    def holds(self) -> bool:
        """Whether lines wait for the text after them."""
        return len(self._held) > 0

    def read(self, now_s: float) -> tuple[list[Fact], int]:
        """Return the facts that are ready, and how many new bytes there are.

        Args:
            now_s: the time of a clock that never steps, seconds.
        """
        data = self.source.read()
        self._scanned.bytes += len(data)
        facts = self._rest() if self.source.is_next else []
        skipped, too_long = self._lines.skips, self._lines.too_long
        whole = self._lines.add(data)
        self._scanned.too_long += self._lines.too_long - too_long
        self._held.add(whole)
        if not self._lines.skips:
            self._end = self.source.at - len(self._lines)
        if self.has_ended:
            return [*facts, *self._rest()], len(data)
        if data:
            self._came.append((now_s, self._end))
        if self.source.is_cut and self._came:  # what comes after the last bytes has its time once it can come
            self._came[-1] = (now_s, self._came[-1][1])
        # Behind a line that was left out, positions in the text are not those in the file: nothing of it may wait.
        size = len(self._held) if skipped and whole else max(self._settled(now_s), len(self._held) - WINDOW_BYTES)
        return [*facts, *self._held.facts(size)], len(data)

    def position(self) -> FollowedPosition:
        """Return where to continue; the facts of all lines before it were returned.

        A line that is too long is left out whole, so it is read again from its begin.
        """
        assert not isinstance(self.source, FollowedPipe)  # noqa: S101 - a pipe cannot be read again
        tail = cast("ResumedSource", self.source).position(self._end - len(self._held))
        return FollowedPosition(tail, self._held.line, self._reader.state())

    def _settled(self, now_s: float) -> int:
        """Return how many of the held bytes have waited for long enough."""
        end = 0
        while self._came and now_s - self._came[0][0] >= HOLD_MS / 1000:
            end = self._came.popleft()[1]
        return end - (self._end - len(self._held)) if end else 0

    def _rest(self) -> list[Fact]:
        """Return the facts of all lines of a file, which has ended."""
        self._held.add(self._lines.end())
        facts = list(self._held.facts(len(self._held)))
        self._reader = self._reader_of()
        self._held, self._end = HeldLines(self._reader, self._scanned), 0
        self._came.clear()
        return facts


class InTurn:
    """Facts of several logs, which wait until older ones of other logs can be there.

    Args:
        logs: how many there are; the facts of one alone need not wait.
    """

    def __init__(self, logs: int) -> None:
        self._settle_s = SETTLE_MS / 1000 if logs > 1 else 0.0
        self._waiting: list[tuple[Fact, float]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, facts: Sequence[Fact], now_s: float) -> None:
        """Add facts that were read at a time."""
        self._waiting.extend((fact, now_s) for fact in facts)

    def is_over(self, since_s: float, now_s: float) -> bool:
        """Return whether facts that were read at a time need not wait any longer."""
        return now_s - since_s >= self._settle_s

    def ready(self, now_s: float) -> list[Fact]:
        """Return the facts whose turn it is, in the order of time."""
        ready = [fact for fact, since_s in self._waiting if self.is_over(since_s, now_s)]
        self._waiting = [each for each in self._waiting if not self.is_over(each[1], now_s)]
        return sorted(ready, key=lambda fact: (fact.order_ms, fact.file, fact.line))


def follow(
    names: Sequence[str],
    readers: Sequence[Callable[[], FactReader]],
    scanned: Scanned,
    *,
    stdin: BinaryIO | None,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[list[Fact]]:
    """Read logs to their end and then as they grow, in the order of time as far as they have been read.

    Args:
        names: of the logs.
        readers: make the parsers of each.
        scanned: where to count.
        go_on: called before each look; `False` ends it.

    Returns:
        The facts whose turn it is since the last look; also an empty list, so that a caller can do something else.
    """
    with ExitStack() as opened:
        logs = []
        for name, reader_of in zip(names, readers, strict=True):
            source = FollowedPipe(stdin) if stdin is not None and name == STDIN else opened_file(name, stdin=stdin)
            opened.callback(source.close)
            logs.append(LogFollower(source, reader_of, scanned))
        in_turn, caught_up_s = InTurn(len(logs)), None
        while go_on():
            now_s, read = time.monotonic(), 0
            for log in logs:
                facts, size = log.read(now_s)
                read += size
                in_turn.add(facts, now_s)
            if caught_up_s is None and not read:
                caught_up_s = now_s + HOLD_MS / 1000 * any(log.holds for log in logs)
            if caught_up_s is not None and now_s >= caught_up_s:  # what is there already is sorted as a whole
                yield in_turn.ready(now_s)
                if all(log.has_ended for log in logs) and not in_turn:
                    return
            if not read:
                time.sleep(POLL_MS / 1000)


def opened_file(name: str, position: TailPosition | None = None, *, stdin: BinaryIO | None = None) -> RotatedLog:
    """Open a file to follow, from its start or from a position; `stdin` is that of `open_log`.

    Raises:
        HeartwheelError: it cannot be read, or is compressed or in UTF-16.
    """
    with closing(open_log(name, stdin)) as log:
        if not isinstance(log, io.BufferedReader):
            raise HeartwheelError(f"{name} cannot be followed: it is compressed or in UTF-16", hint="name a plain log")
    return RotatedLog(Path(name), position, from_begin=True)


def text_before(log: ResumedSource) -> bytes:
    """Return the text before the next line of a log that is read on, as far as that line may need it."""
    return log.before(NEAR_BYTES)
