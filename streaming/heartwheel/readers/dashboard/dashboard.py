"""The dashboard as a whole: a follower feeds a picture, a server shows it, and a canary tests the engine on request."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.canary.canary import Canary
from heartwheel.readers.dashboard.serving import server_of
from heartwheel.readers.http_server.served import Served
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.history import HistoryReader
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.metrics.exposition import Metrics
from heartwheel.settings import Settings


class Dashboard(Served):
    """A dashboard in threads of its own; Kafka, the topics and the job may come later.

    Args:
        settings: the checked configuration.
        hold_canary: whether the canary waits for `start_canary`.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """

    def __init__(self, settings: Settings, *, hold_canary: bool = False) -> None:
        self._hold_canary = hold_canary
        wanted = settings.dashboard
        self.picture = Picture(
            expirations_max=wanted.expirations_max,
            triggers_max=wanted.expirations_max,
            window_ms=wanted.window_ms,
            canary_prefix=settings.canary.group_prefix,
            expected_members=settings.groups.expected_members,
        )
        self._metrics = Metrics(settings)
        self._canary: Canary | None = None
        if settings.canary.enabled:
            self._canary = Canary(settings, on_judged=self._metrics.canary.on_judged)
            self._metrics.canary.watch(self._canary.figures)
        self._view = View(settings.kafka.bootstrap_servers, StormRule(wanted.storm_rebalances, wanted.storm_window_ms))
        self._metrics.watch_groups(lambda: now_of(self.picture, self._view, now_ms=wall_ms()).trouble)
        self._follower = Follower(
            settings,
            since_ms=wall_ms() - wanted.window_ms,
            tail_max=wanted.expirations_max,
            on_rows=self._take,
            on_link=self._link,
        )
        server = server_of(
            self.picture,
            settings,
            history=HistoryReader(settings),
            canary=self._canary.figures if self._canary else None,
            metrics=self._metrics.text,
        )
        super().__init__(server)

    def _begin(self, stack: contextlib.ExitStack) -> None:
        super()._begin(stack)
        stack.enter_context(self._follower)
        if self._canary is not None:
            stack.callback(self._canary.stop)
            if not self._hold_canary:
                self._canary.start()

    def start_canary(self) -> None:
        """Start the canary if one is wanted and was held; once."""
        if self._canary is not None and self._hold_canary:
            self._hold_canary = False
            self._canary.start()

    def _take(self, rows: Sequence[TopicRow]) -> None:
        self.picture.apply(rows, now_ms=wall_ms())
        self._metrics.apply(rows)

    def _link(self, linked: bool) -> None:  # noqa: FBT001 - its one argument
        self.picture.link(linked, now_ms=wall_ms())
        self._metrics.link(linked)
