"""Gaps: times for which a request log has no lines, because the broker was restarted or its logger switched off.

After a long time without a line nothing is known about that time. After a short one the broker may have been busy, or
may have been restarted, in which case its coordinator gives every member a whole session
(`GroupCoordinator.onElection`). No connection outlives a process: so a line of a connection that existed before shows
that the broker was not restarted, and if no such line comes for a while, it was. That while begins when the broker
serves clients: a broker that starts slowly writes lines of its controller seconds before, and until its coordinator has
loaded the groups none of their members can expire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from heartwheel.sources.explain.log_tail import TailedLine
from heartwheel.sources.tap.request_log import Answered
from heartwheel.sources.tap.requests import LOAD_IN_PROGRESS, error_of, is_elsewhere

GAP_MS: Final = 2_500
"""A time without any line that is at least this long is a gap, ms: the broker was away, or its logger was switched off.
The echo brings a line several times as often."""

PAUSE_MS: Final = 1_000
"""A time without any line that is at least this long may be a restart, ms: a broker does not stop and start sooner."""

RESTART_MS: Final = 2_500
"""How long after a pause a line of an earlier connection is waited for, ms; the echo's comes several times as often."""

LOADING_MS_MAX: Final = 60_000
"""How long after a restart the tap waits for the broker to serve clients and to load its groups, ms."""

CONNECTIONS_MAX: Final = 256
"""How many connections are remembered: those that were used last."""

_SERVED: Final = re.compile(rb'"requestApiKey\\?":(?:3|8|10|11|12|13|14|32|68|76|88),')
"""Requests that only a started broker answers: for metadata, commits and groups, a coordinator, settings."""

_FIELD: Final = b'"connection'

_CONNECTION: Final = re.compile(rb'"connection\\?"\s*:\s*\\?"([^"\\]+)')
"""Inside another JSON text the quotes are escaped."""


class QuietTime(msgspec.Struct):
    """A time without lines, for which it is not yet known whether the broker was restarted.

    Args:
        before_ms: time of the last line before it, epoch ms.
        from_ms: time of the first line after it, epoch ms.
        answered_ms: when the first request arrived that the coordinator has answered since, epoch ms; -1 before.
        loading_ms: when the last request arrived that the coordinator refused because it was loading the group or,
            before its first answer, because it did not coordinate it, epoch ms; -1 before.
        served_ms: time of the first line after it that shows that the broker serves clients, epoch ms; -1 before.
    """

    before_ms: int
    from_ms: int
    answered_ms: int = -1
    loading_ms: int = -1
    served_ms: int = -1


class LogGap(msgspec.Struct, frozen=True):
    """A time of which nothing is known.

    Args:
        before_ms: up to when everything is known, epoch ms.
        since_ms: from when on everything is known again, epoch ms.
        is_restart: whether the broker was restarted in it, as far as the log shows.
    """

    before_ms: int
    since_ms: int
    is_restart: bool = False


class Gaps:
    """The gaps of one request log.

    Args:
        connections: those that were used last, in the order of use.

    Attributes:
        pause: the undecided pause, if there is one; meanwhile nothing that comes after it is certain.
    """

    def __init__(self, connections: Iterable[str] = (), pause: QuietTime | None = None) -> None:
        self._known = dict.fromkeys(connections)
        self._fresh: dict[str, None] = {}
        self.pause = pause

    @property
    def connections(self) -> list[str]:
        """The connections that identify the broker's process."""
        return list(self._known)

    def forget(self) -> None:
        """Start again: lines are missing, so what was known before says nothing about the next ones."""
        self._known.clear()
        self.pause = None

    def note(self, lines: Sequence[TailedLine], before_ms: int, first_ms: int) -> LogGap | None:
        """Note lines without a pause between them, and return the gap before them if it is certain.

        Args:
            lines: the next ones of the log.
            before_ms: time of the last line before them, epoch ms.
        """
        used = {name: None for line in lines if (name := connection_of(line.text))}
        silent_ms, pause = first_ms - before_ms, self.pause
        outlived = not self._known.keys().isdisjoint(used)
        if pause is None and silent_ms > PAUSE_MS and self._known and used and not outlived:
            self.pause, self._fresh = QuietTime(before_ms, first_ms), {}
        elif pause is not None and not outlived and silent_ms > GAP_MS:
            pause.from_ms, pause.answered_ms, pause.loading_ms, pause.served_ms = first_ms, -1, -1, -1
        if self.pause is not None and not outlived:
            self._fresh.update(used)
            return None
        self.pause = None
        self._learn(used)
        if silent_ms > GAP_MS:
            return LogGap(before_ms if pause is None else pause.before_ms, first_ms)
        if pause is not None and pause.from_ms - pause.before_ms > GAP_MS:
            return LogGap(pause.before_ms, pause.from_ms)
        return None

    def note_served(self, lines: Sequence[TailedLine], time_of: Callable[[Sequence[TailedLine]], int | None]) -> None:
        """Note when the broker began to serve clients again, if that is open and these lines show it.

        Args:
            lines: the next ones of the log.
            time_of: returns when the first of some lines was logged, epoch ms.
        """
        if self.pause is not None and self.pause.served_ms < 0:
            served_ms = time_of([line for line in lines if _SERVED.search(line.text)])
            self.pause.served_ms = -1 if served_ms is None else served_ms

    def note_request(self, answered: Answered) -> None:
        """Note an answer of the coordinator, if a pause is open: it shows whether the group was loaded by then."""
        pause, arrived_ms = self.pause, answered.arrived_ms
        if pause is None or arrived_ms > _settled_ms(pause, pause.loading_ms):
            return
        elsewhere = is_elsewhere(answered)
        if error_of(answered) == LOAD_IN_PROGRESS or (elsewhere and pause.answered_ms < 0):
            pause.loading_ms = max(pause.loading_ms, arrived_ms)
        elif arrived_ms >= pause.from_ms and not elsewhere:
            pause.answered_ms = arrived_ms if pause.answered_ms < 0 else min(arrived_ms, pause.answered_ms)

    def settle(self, newest_ms: int) -> LogGap | None:
        """Return the gap of a restart, once no connection has outlived the pause and the groups have been loaded.

        Args:
            newest_ms: time of the newest line, epoch ms.
        """
        pause = self.pause
        if pause is None or newest_ms < _settled_ms(pause, pause.loading_ms):
            return None
        self.pause, self._known, fresh = None, {}, self._fresh
        self._learn(fresh)
        begun_ms = pause.answered_ms if pause.answered_ms >= 0 else _settled_ms(pause, -1)
        return LogGap(pause.before_ms, max(begun_ms, pause.loading_ms), is_restart=True)

    def _learn(self, used: Iterable[str]) -> None:
        for name in used:
            self._known.pop(name, None)
            self._known[name] = None
        for name in list(self._known)[:-CONNECTIONS_MAX]:
            del self._known[name]


def _settled_ms(pause: QuietTime, loading_ms: int) -> int:
    """Return when a pause counts as a restart unless something contradicts that before, epoch ms.

    Args:
        loading_ms: until when groups were loaded, epoch ms; -1 if they were not.
    """
    longest_ms = pause.from_ms + LOADING_MS_MAX
    return longest_ms if pause.served_ms < 0 else min(max(pause.served_ms, loading_ms) + RESTART_MS, longest_ms)


def connection_of(line: bytes) -> str:
    """Return the connection of a line's request, as the broker names it; empty if the line does not contain it."""
    found = _CONNECTION.match(line, max(line.rfind(_FIELD), 0))
    return "" if found is None else found[1].decode(errors="replace")
