"""Logs or a history as they were read last; read again when they have changed."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.advice import Advice, GroupAdvice
from heartwheel.sources.watch.log_source import LogSource
from heartwheel.wire.explained import ExplainedEvent

EVENTS_MAX: Final = 50_000
"""Most events that are kept of a source, the newest."""

_Signature = tuple[tuple[str, int, int], ...]


class LogReading(NamedTuple):
    """What was read.

    Args:
        events: the newest ones, the oldest of them first.
        dropped: how many older ones there are.
        scanned: what was counted.
        advice: about each group with something to advise, from all events.
    """

    events: list[ExplainedEvent]
    dropped: int
    scanned: Scanned
    advice: list[GroupAdvice]


class LogReader:
    """Reads a source when it is asked for, and again only if a file has changed.

    Args:
        source: logs or a history.
    """

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._last: tuple[_Signature, LogReading] | None = None

    def read(self) -> LogReading:
        """Return what the source has now.

        Raises:
            HeartwheelError: it cannot be read.
        """
        with self._lock:
            signature = self._signature()
            if self._last is None or self._last[0] != signature:
                self._last = signature, self._read()
            return self._last[1]

    def _read(self) -> LogReading:
        events: deque[ExplainedEvent] = deque(maxlen=EVENTS_MAX)
        scanned, advice, number = Scanned(), Advice(), 0
        for event in self._source.explain(scanned):
            number += 1
            events.append(event)
            advice.add(event)
        return LogReading(list(events), number - len(events), scanned, advice.groups())

    def _signature(self) -> _Signature:
        names = [Path(name) for name in self._source.names]
        if self._source.history is not None:
            names.append(Path(f"{self._source.history}-wal"))
        return tuple((str(name), *_state(name)) for name in names)


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns
