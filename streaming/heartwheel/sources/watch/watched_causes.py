"""What happened to pods and machines: read again and again, and kept in the history."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Callable
from typing import Final, Self

from heartwheel.base.wall_clock import wall_ms
from heartwheel.settings.servers import WatchSettings
from heartwheel.sources.explain.causes.happening import HAPPENINGS_MAX
from heartwheel.sources.explain.causes.late import REMOVALS_MAX, LateCauses
from heartwheel.sources.explain.causes.read import CauseFiles, places_of
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.watch.containers.kubernetes_causes import KubernetesCauses
from heartwheel.sources.watch.containers.targets import opened_namespaces
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.wire.explained import ExplainedEvent

_LOOK_EVERY_S: Final = 1.0

_log = logging.getLogger(__name__)


class WatchedCauses:
    """The happenings of files and of namespaces, and those that the history has from before; a context manager.

    Args:
        wanted: names the files, and the namespaces.
        history: keeps them.
        zone: that of times that name none.
        clock: a clock that never steps, seconds.

    Attributes:
        known: the newest of them, as many as the history keeps.

    Raises:
        HeartwheelError: a file cannot be read, or the API of Kubernetes cannot be asked.
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
        names = [name.strip() for name in wanted.causes.split(",") if name.strip()]
        files, self._namespaces = places_of(names)
        kept = history.happenings()
        # Ten thousand removals with their explanations take 15 MB: without causes none is looked at again.
        self.known = LateCauses(kept, kept_max=HAPPENINGS_MAX, removals_max=REMOVALS_MAX if names or kept else 0)
        self._files = CauseFiles(files, zone)
        self._wanted = wanted
        self._live: list[KubernetesCauses] = []
        self._doubted: set[str] = set()
        self._looked_s = clock()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._live = opened_namespaces(self._namespaces, self._wanted, stack)
            self._read()
            self._files.check()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def look(self) -> list[ExplainedEvent]:
        """Read what has changed, at most once a second; a file that cannot be read now is reported.

        Returns:
            The removals that were explained before and have other causes now.
        """
        now_s = self._clock()
        if now_s - self._looked_s < _LOOK_EVERY_S:
            return []
        self._looked_s = now_s
        again = self._read()
        for error in self._files.errors:
            _log.warning("%s", error)
        return again

    def _read(self) -> list[ExplainedEvent]:
        found = [each for source in self._live for each in source.read()]
        new = self.known.add(found + self._files.read())
        if new:
            self._history.keep_happenings(new, now_ms=wall_ms())
        for doubt in itertools.chain(self._files.doubts(), *(source.doubts() for source in self._live)):
            if doubt not in self._doubted:
                self._doubted.add(doubt)
                _log.warning("%s", doubt)
        return self.known.again(new)
