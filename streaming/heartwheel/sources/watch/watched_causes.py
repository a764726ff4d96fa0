"""What happened to pods and machines: read again and again, and kept in the history."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.wall_clock import wall_ms
from heartwheel.settings.servers import WatchSettings
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.causes.read import CauseFiles
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.watch.history_file import HistoryFile

_LOOK_EVERY_S: Final = 1.0

_log = logging.getLogger(__name__)


class WatchedCauses:
    """The happenings of some files, and those that the history has from earlier ones.

    Args:
        wanted: names the files.
        history: keeps them.
        zone: that of times that name none.
        clock: a clock that never steps, seconds.

    Attributes:
        known: all of them.

    Raises:
        HeartwheelError: a file cannot be read.
    """

    def __init__(
        self,
        wanted: WatchSettings,
        history: HistoryFile,
        zone: LocalZone,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._history, self._clock = history, clock
        self.known = Causes(history.happenings())
        self._files = CauseFiles([name.strip() for name in wanted.causes.split(",") if name.strip()], zone)
        self._doubted: set[str] = set()
        self._looked_s = clock()
        self._read()

    def look(self) -> None:
        """Read the files that have changed, at most once a second; one that cannot be read now is reported."""
        now_s = self._clock()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return
        self._looked_s = now_s
        try:
            self._read()
        except HeartwheelError as error:
            _log.warning("%s", error)

    def _read(self) -> None:
        new = self.known.add(self._files.read())
        if new:
            self._history.keep_happenings(new, now_ms=wall_ms())
        for doubt in self._files.doubts():
            if doubt not in self._doubted:
                self._doubted.add(doubt)
                _log.warning("%s", doubt)
