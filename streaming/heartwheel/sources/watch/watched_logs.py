"""Read brokers' logs into a history: each line once, whatever ends the process."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.wall_clock import wall_ms
from heartwheel.sources.explain.fact_reader import FactReader
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.follow import HOLD_MS, LogFollower, ResumedSource, opened_file, text_before
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.opened_log import STDIN
from heartwheel.sources.explain.rotated_log import READ_BYTES, TailPosition
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.containers.container_log import ContainerLog
from heartwheel.sources.watch.containers.followed import Containers
from heartwheel.sources.watch.history_file import HistoryFile, SavedLog

_SAVE_EVERY_S: Final = 1.0
_GONE_S: Final = 600.0
"""How long the log of a container that is gone waits for one of the same name, seconds."""

_log = logging.getLogger(__name__)


class ReadFacts(NamedTuple):
    """What was read at once.

    Args:
        facts: which the history has by now.
        newest: the number of the newest fact that it has.
        size: how many bytes were read.
    """

    facts: list[Fact]
    newest: int
    size: int


class WatchedLogs:
    """Brokers' logs that are read into a history; a context manager.

    Args:
        names: of the logs.
        history: receives the facts; it says where each log continues.
        zone: that of times that name none.
        containers: whose logs are read, too, as they come and go.
        clock: a clock that never steps, seconds.

    Attributes:
        scanned: the counts of all that was read, those of earlier processes included.
        lost: how often lines may be missing, because a file was gone before it was read.
        files: the names of the files, by the number that facts have.

    Raises:
        HeartwheelError: a log cannot be read.
    """

    def __init__(
        self,
        names: Sequence[str],
        history: HistoryFile,
        zone: LocalZone | None = None,
        *,
        containers: Sequence[Containers] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._history, self._clock, self._containers = history, clock, containers
        self.scanned, self.lost = Scanned(), 0
        self.files = history.files()
        self.scanned.restore(history.scanned())
        self._layout = Layout(zone)
        with contextlib.ExitStack() as opening:
            opening.callback(self._close)
            self._logs: dict[str, _WatchedLog] = {}
            self._gone_s: dict[str, float] = {}
            for name in dict.fromkeys(names):
                self._open(str(Path(name)), functools.partial(_opened_log, name))
            self._open_containers(is_known=False)
            self.save()  # from now on a file that is rotated is one to read
            self._stack = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self) -> ReadFacts:
        """Read what is new, and save it with the positions behind it."""
        now_s = self._clock()
        self._open_containers(is_known=True)
        self._close_gone(now_s)
        parts: list[tuple[Sequence[Fact], bool]] = []
        size = 0
        for log in self._logs.values():
            some, read = log.follower.read(now_s)
            if some:
                parts.append((some, log.is_known))
            size += read
            log.note_read(read, now_s)
            self._note_lost(log)
        if parts or now_s - self._saved_s >= _SAVE_EVERY_S or self._heads() != self._saved_heads:
            self.save(parts)
        return ReadFacts([fact for some, _ in parts for fact in some], self._newest, size)

    @property
    def are_read(self) -> bool:
        """Whether the history has what was in each log when it was opened."""
        return all(log.is_read for log in self._logs.values())

    def behind(self) -> int:
        """Return how many bytes of the logs are not read yet; from any thread."""
        return sum(log.source.behind() for log in self._logs.values())

    def save(self, parts: Sequence[tuple[Sequence[Fact], bool]] = ()) -> None:
        """Save the facts of some logs, and how far each log was read."""
        positions = {name: SavedLog(log.file, log.follower.position()) for name, log in self._logs.items()}
        self._newest = self._history.save(parts, positions, self.scanned.counts(), now_ms=wall_ms())
        self._saved_s, self._saved_heads = self._clock(), self._heads()

    def _heads(self) -> list[tuple[int, str]]:
        """Return which file of each log is read: what is saved of a file without a first line finds no copy of it."""
        return [(log.file, log.source.head) for log in self._logs.values()]

    def _open(self, name: str, open_source: Callable[[TailPosition | None], ResumedSource]) -> _WatchedLog:
        log = _WatchedLog(name, open_source, self._history, self._layout, self.scanned, self.files)
        self._logs[log.name] = log
        self._note_lost(log)
        return log

    def _open_containers(self, *, is_known: bool) -> None:
        """Open the logs of containers that are new; what they have is news if they came while others were read."""
        for each in self._containers:
            for name in each.names():
                self._gone_s.pop(name, None)
                if name not in self._logs:
                    log = self._open(name, functools.partial(ContainerLog, name, each))
                    log.is_known = log.is_known or is_known

    def _close_gone(self, now_s: float) -> None:
        """Close logs of containers that have been gone for long: a name may not come back."""
        present = {name for each in self._containers for name in each.names()}
        for name, log in list(self._logs.items()):
            if not isinstance(log.source, ContainerLog) or name in present:
                continue
            if now_s - self._gone_s.setdefault(name, now_s) > _GONE_S:
                self.save()
                self._logs.pop(name).source.close()

    def _close(self) -> None:
        for each in self._containers:
            each.close()
        for log in self._logs.values():
            log.source.close()

    def _note_lost(self, log: _WatchedLog) -> None:
        if log.source.lost:
            self.lost += 1
            _log.warning("%s: lines may be missing: the file with them is gone", log.name)


def _opened_log(name: str, position: TailPosition | None) -> ResumedSource:
    if name == STDIN:
        hint = "name files; heartwheel explain --follow - reads a pipe"
        raise HeartwheelError("a pipe cannot be watched: it cannot be read on after a restart", hint=hint)
    return opened_file(str(Path(name)), position)


class _WatchedLog:
    """One log, and the file of it that is being read.

    Attributes:
        file: the number of that file in the history.
        is_read: whether the history has what was in the log when it was opened.
        is_known: whether it has what was in the log when it was opened for the first time: the rest is news.
    """

    def __init__(
        self,
        name: str,
        open_source: Callable[[TailPosition | None], ResumedSource],
        history: HistoryFile,
        layout: Layout,
        scanned: Scanned,
        files: dict[int, str],
    ) -> None:
        self.name, self._history, self._layout, self._scanned, self._files = name, history, layout, scanned, files
        saved = history.saved(name)
        self.is_known, self.is_read = saved is not None, False
        self._end_s: float | None = None
        self.source = open_source(saved.position.tail if saved else None)
        position = None if saved is None or self.source.lost else saved.position
        self.file = 0 if saved is None or position is None else saved.file
        self._continues = self.file > 0
        self.follower = LogFollower(self.source, self._reader, scanned, position, text_before(self.source))

    def note_read(self, size: int, now_s: float) -> None:
        """Note that so many bytes were read; what the log had at first is read when they are few, and have waited."""
        if self._end_s is None and size < READ_BYTES and self.source.is_caught_up:
            self._end_s = now_s
        self.is_read = self.is_read or (self._end_s is not None and now_s - self._end_s >= HOLD_MS / 1000)
        self.is_known = self.is_known or self.is_read

    def _reader(self) -> FactReader:
        if self._continues:
            self._continues = False
        else:
            self.file = self._history.add_file(self.name)
            self._files[self.file] = self.name
        return FactReader(self.name, self.file, self._layout, self._scanned)
