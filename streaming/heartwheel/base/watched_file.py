"""A file that is read again when it changes, so that access rights can change without a restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from heartwheel.base.errors import HeartwheelError

T = TypeVar("T")

_LOOK_S: Final = 1.0

_log = logging.getLogger(__name__)


class WatchedFile(Generic[T]):
    """What a file says now.

    The file is looked at when it is asked for, at most once a second. One that becomes wrong is passed over with a line
    in the log, and all stays as it was.

    Args:
        read: reads it; raises `HeartwheelError` if it cannot be used.
        what: what it holds, for the log: "the users".

    Raises:
        HeartwheelError: of `read`.
    """

    def __init__(self, file: Path, read: Callable[[Path], T], what: str) -> None:
        self._file, self._read, self._what = file, read, what
        self._lock = threading.Lock()
        self._seen = _stamp_of(file)
        self._value = read(file)
        self._looked_s = time.monotonic()

    def get(self) -> T:
        """Return what it says; from any thread."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._looked_s >= _LOOK_S:
                self._looked_s = now_s
                self._look()
            return self._value

    def _look(self) -> None:
        seen = _stamp_of(self._file)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._value = self._read(self._file)
        except HeartwheelError as error:
            _log.error("%s stay as they were: %s", self._what, error)
        else:
            _log.info("%s are read again", self._what)


def _stamp_of(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
