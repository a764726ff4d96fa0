"""Gaps: times of which a request log says nothing, as the broker was restarted, say, or its logger switched off.

After a long time without a line nothing is known of it. After a short one the broker may have been busy, or may have
been restarted, when its coordinator gives every member a whole session (`GroupCoordinator.onElection`). No connection
outlives a process: so a line of one that was there before says that it is the same broker, and if none comes for a
while, it is not. That while begins when the broker serves clients: one that starts slowly writes lines of its
controller seconds before, and until its coordinator has loaded the groups nobody of them can be expired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from heartwheel.tap.log_tail import Line
from heartwheel.tap.request_log import Answered
from heartwheel.tap.requests import LOAD_IN_PROGRESS, error_of, is_elsewhere

GAP_MS: Final = 2_500
"""From how long on a time without any line is one of which nothing is known, ms: the broker was away, or its logger was
switched off. The echo brings a line several times as often."""

PAUSE_MS: Final = 1_000
"""From how long on a time without any line may be a restart, ms: a broker does not stop and start sooner."""

RESTART_MS: Final = 2_500
"""How long after a pause a connection from before it is waited for, ms; the echo's is used several times as often."""

LOADING_MS_MAX: Final = 60_000
"""How long after a restart it is waited for that the broker serves clients and has loaded its groups, ms."""

CONNECTIONS_MAX: Final = 256
"""Of how many connections, those that were used last, it is remembered that they were there."""

_SERVED: Final = re.compile(rb'"requestApiKey\\?":(?:3|8|10|11|12|13|14|32|68|76|88),')
"""Requests that a broker answers once it has started: for metadata, commits and groups, a coordinator, settings."""

_FIELD: Final = b'"connection'

_CONNECTION: Final = re.compile(rb'"connection\\?"\s*:\s*\\?"([^"\\]+)')
"""Inside of another JSON its quotes are escaped."""


class Pause(msgspec.Struct):
    """A time without lines, of which it is not known yet whether the broker was restarted in it.

    Args:
        before_ms: time of the last line before it, epoch ms.
        from_ms: time of the first line after it, epoch ms.
        answered_ms: when the first request came that the coordinator has answered since, epoch ms; -1 before.
        loading_ms: when the last request came to which it said that it loads the group, or before the first answer that
            it does not coordinate it, epoch ms; -1 before.
        served_ms: time of the first line after it that shows a broker which serves clients, epoch ms; -1 before.
    """

    before_ms: int
    from_ms: int
    answered_ms: int = -1
    loading_ms: int = -1
    served_ms: int = -1


class Gap(msgspec.Struct, frozen=True):
    """A time of which nothing is known.

    Args:
        before_ms: up to when everything is known, epoch ms.
        since_ms: from when on everything is known again, epoch ms.
        is_restart: whether the broker was restarted in it, as far as that can be told.
    """

    before_ms: int
    since_ms: int
    is_restart: bool = False


class Gaps:
    """The gaps of one request log.

    Args:
        connections: those that were used last, the last one last.
        pause: what is in doubt.

    Attributes:
        pause: what is in doubt now; while it is, nothing is certain of what comes after it.
    """

    def __init__(self, connections: Iterable[str] = (), pause: Pause | None = None) -> None:
        self._known = dict.fromkeys(connections)
        self._fresh: dict[str, None] = {}
        self.pause = pause

    @property
    def connections(self) -> list[str]:
        """The connections by which it is told whether the broker is still the same."""
        return list(self._known)

    def forget(self) -> None:
        """Begin anew: lines are missing, so what was before says nothing about the next ones."""
        self._known.clear()
        self.pause = None

    def note(self, lines: Sequence[Line], before_ms: int, first_ms: int) -> Gap | None:
        """Take in lines without a pause between them; return the gap before them if it is certain.

        Args:
            lines: the next ones of the log.
            before_ms: time of the last line before them, epoch ms.
            first_ms: time of the first of them, epoch ms.
        """
        used = {name: None for line in lines if (name := connection_of(line.text))}
        silent_ms, pause = first_ms - before_ms, self.pause
        outlived = not self._known.keys().isdisjoint(used)
        if pause is None and silent_ms > PAUSE_MS and self._known and used and not outlived:
            self.pause, self._fresh = Pause(before_ms, first_ms), {}
        elif pause is not None and not outlived and silent_ms > GAP_MS:
            pause.from_ms, pause.answered_ms, pause.loading_ms, pause.served_ms = first_ms, -1, -1, -1
        if self.pause is not None and not outlived:
            self._fresh.update(used)
            return None
        self.pause = None
        self._learn(used)
        if silent_ms > GAP_MS:
            return Gap(before_ms if pause is None else pause.before_ms, first_ms)
        if pause is not None and pause.from_ms - pause.before_ms > GAP_MS:
            return Gap(pause.before_ms, pause.from_ms)
        return None

    def note_served(self, lines: Sequence[Line], time_of: Callable[[Sequence[Line]], int | None]) -> None:
        """Take in since when the broker serves clients again, if that matters now and is in these lines.

        Args:
            lines: the next ones of the log.
            time_of: returns when the first of some lines was logged, epoch ms.
        """
        if self.pause is not None and self.pause.served_ms < 0:
            served_ms = time_of([line for line in lines if _SERVED.search(line.text)])
            self.pause.served_ms = -1 if served_ms is None else served_ms

    def note_request(self, answered: Answered) -> None:
        """Take in what the coordinator answered, if that matters now: by then it had loaded the group, or had not."""
        pause, arrived_ms = self.pause, answered.arrived_ms
        if pause is None or arrived_ms > _settled_ms(pause, pause.loading_ms):
            return
        elsewhere = is_elsewhere(answered)
        if error_of(answered) == LOAD_IN_PROGRESS or (elsewhere and pause.answered_ms < 0):
            pause.loading_ms = max(pause.loading_ms, arrived_ms)
        elif arrived_ms >= pause.from_ms and not elsewhere:
            pause.answered_ms = arrived_ms if pause.answered_ms < 0 else min(arrived_ms, pause.answered_ms)

    def settle(self, newest_ms: int) -> Gap | None:
        """Return the gap of a restart, if no connection has outlived the pause by now, and groups have been loaded.

        Args:
            newest_ms: time of the newest line, epoch ms.
        """
        pause = self.pause
        if pause is None or newest_ms < _settled_ms(pause, pause.loading_ms):
            return None
        self.pause, self._known, fresh = None, {}, self._fresh
        self._learn(fresh)
        begun_ms = pause.answered_ms if pause.answered_ms >= 0 else _settled_ms(pause, -1)
        return Gap(pause.before_ms, max(begun_ms, pause.loading_ms), is_restart=True)

    def _learn(self, used: Iterable[str]) -> None:
        for name in used:
            self._known.pop(name, None)
            self._known[name] = None
        for name in list(self._known)[:-CONNECTIONS_MAX]:
            del self._known[name]


def _settled_ms(pause: Pause, loading_ms: int) -> int:
    """Return when a pause was a restart, if nothing else is said until then, epoch ms.

    Args:
        pause: what is in doubt.
        loading_ms: until when groups were loaded, epoch ms; -1 if they were not.
    """
    longest_ms = pause.from_ms + LOADING_MS_MAX
    return longest_ms if pause.served_ms < 0 else min(max(pause.served_ms, loading_ms) + RESTART_MS, longest_ms)


def connection_of(line: bytes) -> str:
    """Return the connection by which a line's request came, as the broker names it; empty if the line does not say."""
    found = _CONNECTION.match(line, max(line.rfind(_FIELD), 0))
    return "" if found is None else found[1].decode(errors="replace")
