"""Entries of a container's log by their times: which of them were read before.

Neither API hands out a log by position. Each filters entries by time, to the second, and keeps them in the order of the
log. So of the entries that are not older than the second of the newest one, the first so many as were read are those
that were read: this holds for entries of one time, and for those of a clock that stepped back within that second. What
is newer than the newest one was not read; if it comes before all that was read, the log has been rotated.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from heartwheel.sources.explain.rotated_log import StampPosition

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")
_SECOND_NS: Final = 1_000_000_000


class StampedEntries:
    """The entries of a container's log, each once, over any number of answers.

    Args:
        position: where to continue; `None` for the begin of the log.

    Attributes:
        newest_ns: the newest time that was read, epoch ns; 0 before the first.
        entries: how many entries were read that are not older than the second of that time.
        gap: whether entries may be missing before the one that was taken last, as the log was rotated.
    """

    def __init__(self, position: StampPosition | None = None) -> None:
        self.newest_ns, self.entries = (position.newest_ns, position.entries) if position else (0, 0)
        self.gap = False
        self._skip = self.entries
        self._second: tuple[tuple[bytes, bytes], int] = ((b"", b""), 0)

    @property
    def since_s(self) -> int:
        """The time from which on to ask for entries, epoch s; 0 for all."""
        return self.newest_ns // _SECOND_NS

    def begin(self) -> None:
        """Begin with an answer to a request for the entries since `since_s`."""
        self._skip = self.entries

    def take(self, entry: bytes) -> bytes | None:
        """Return the text of an entry; `None` if it was read before, or is none of the log.

        Args:
            entry: with its time before it. What has none are words of the server about itself.
        """
        self.gap = False
        stamp = _STAMP.match(entry)
        at_ns = None if stamp is None else self._time_ns(stamp)
        if stamp is None or at_ns is None or self._was_read(at_ns):
            return None
        if at_ns // _SECOND_NS > self.since_s:
            self.entries = 0
        self.entries += at_ns // _SECOND_NS >= self.since_s
        self.newest_ns = max(self.newest_ns, at_ns)
        return entry[stamp.end() :]

    def _was_read(self, at_ns: int) -> bool:
        if not self._skip:
            return False
        if at_ns > self.newest_ns:
            self.gap, self._skip = True, 0
            return False
        self._skip -= at_ns // _SECOND_NS >= self.since_s
        return True

    def _time_ns(self, stamp: re.Match[bytes]) -> int | None:
        parts = (stamp[1], stamp[3])
        if self._second[0] != parts:
            try:
                moment = datetime.fromisoformat(b"".join(parts).decode())
            except ValueError:
                return None
            self._second = (parts, int(moment.timestamp()) * _SECOND_NS)
        return self._second[1] + int((stamp[2] or b"").ljust(9, b"0"))
