"""The sources of the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.downloads import Downloads
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.settings import Settings

if TYPE_CHECKING:  # it loads a client of Kafka, which not every dashboard needs
    from heartwheel.readers.live.history import HistoryReader


class Deps:
    """The sources of the answers.

    Args:
        picture: the content of the topics.
        settings: the checked configuration.
        history: reads the heartbeat topic on demand; `None` where there is no Kafka.
        canary: returns the canary's figures; `None` if none runs.
        now_ms: the wall clock, epoch ms.
    """

    def __init__(
        self,
        picture: Picture,
        settings: Settings,
        *,
        history: HistoryReader | None = None,
        canary: Callable[[], CanaryFigures] | None = None,
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self.picture, self.settings, self.history, self.now_ms = picture, settings, history, now_ms
        self._canary = canary
        self.downloads = Downloads()
        wanted = settings.dashboard
        self.storm = StormRule(wanted.storm_rebalances, wanted.storm_window_ms)

    def view(self, show_canary: bool = False) -> View:  # noqa: FBT001, FBT002 - its one argument
        """Return the parameters for showing the picture."""
        figures = self._canary() if self._canary is not None else None
        return View(self.settings.kafka.bootstrap_servers, self.storm, figures, show_canary)
