"""The service: it follows logs into a history, and serves a page of what they say."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.trouble import GroupsInTrouble, groups_in_trouble
from heartwheel.readers.metrics.log_metrics import LogFigures, LogMetrics
from heartwheel.readers.notify.dispatcher import Post
from heartwheel.settings import Settings
from heartwheel.sources.explain.follow import POLL_MS
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.shown import RowsOnce, ShownEvent, with_rows
from heartwheel.sources.watch.containers.targets import opened_containers
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.live_events import LiveEvents
from heartwheel.sources.watch.older_time import older_time
from heartwheel.sources.watch.reports import Reports
from heartwheel.sources.watch.watched_causes import WatchedCauses
from heartwheel.sources.watch.watched_logs import WatchedLogs
from heartwheel.wire.explained import ExplainedEvent, Happened

_TRIM_EVERY_S: Final = 60.0
_NEWS_MAX: Final = 200_000
"""Most facts that are reported after a start."""

_log = logging.getLogger(__name__)


class Watcher:
    """A watcher of brokers' logs; a context manager.

    Args:
        settings: the checked configuration.
        names: of the logs.
        zone: that of times that name none.
        post: posts a message once; with `None` no messages are made.

    Raises:
        HeartwheelError: a log or the history cannot be used, or the address cannot be listened on.
    """

    def __init__(self, settings: Settings, names: Sequence[str], zone: LocalZone, *, post: Post | None = None) -> None:
        self._settings, self._names, self._zone = settings, list(dict.fromkeys(names)), zone
        self._storm = StormRule(settings.dashboard.storm_rebalances, settings.dashboard.storm_window_ms)
        self._post = post
        self._reports: Reports | None = None
        self._stopping = threading.Event()
        self._rows = RowsOnce()
        self._trimmed_s = -_TRIM_EVERY_S
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        wanted = self._settings.watch
        with contextlib.ExitStack() as stack:
            self._history = stack.enter_context(HistoryFile(Path(wanted.history_file), writes=True))
            containers = opened_containers(wanted, stack)
            logs = WatchedLogs(self._names, self._history, self._zone, containers=containers)
            self._logs = stack.enter_context(logs)
            self._names += [each.label for each in containers]
            self._logs_max = len(self._names) + len(containers)  # which may be several each
            rows_max = self._settings.dashboard.expirations_max
            self._metrics = LogMetrics(self._settings, figures=self._figures, troubles=self._troubles)
            self._causes = stack.enter_context(WatchedCauses(wanted, self._history, self._zone))
            self._page = LogPage(
                self._settings,
                self._names,
                rows_max=rows_max,
                metrics=self._metrics.text,
                follows=True,
                older=functools.partial(older_time, self._history.path, storm=self._storm),
            )
            self._page.picture.log_is_behind = True
            stack.enter_context(self._page)
            if self._post is not None:
                self._reports = stack.enter_context(
                    Reports(self._settings, self._history, self._post, storm=self._storm)
                )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._page.url

    def stop(self) -> None:
        """Ask the watcher to stop; may be called from any thread or signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Watch until `stop` is called.

        Raises:
            HeartwheelError: the history cannot be written, or the page has ended by itself.
        """
        self._causes.look()
        reported = self._reported()
        self._catch_up()
        live = self._live_events(reported)
        self._page.known_from(live.known_from_ms)
        for some, is_news in live.kept(reported):
            events = self._rows.of(some)
            self._show(events)
            if is_news:
                self._report(events, reported)
        self._report([], live.explained)
        self._explain_again(self._causes.known.removals)  # a former process may have ended before it reported a cause
        self._page.picture.log_is_behind = False
        while not self._stopping.is_set():
            self._explain_again(self._causes.look())
            read = self._logs.read()
            live.add(read.facts, read.newest)
            for some in live.ready():
                events = self._rows.of(some)
                self._show(events)
                self._report(events, live.explained)
            self._trim()
            self._check_parts()
            if not read.size:
                self._stopping.wait(POLL_MS / 1000)
        self._logs.save()

    def _catch_up(self) -> None:
        """Read what the logs have, into the history alone: in any order, and however much it is."""
        while not self._stopping.is_set():
            size = self._logs.read().size
            self._trim()
            if size:
                continue
            if self._logs.are_read:
                return
            self._stopping.wait(POLL_MS / 1000)

    def _live_events(self, reported: int) -> LiveEvents:
        """Return the events of the newest facts, and of all since the first news that no message was made of."""
        newest, wanted = self._history.newest, self._settings.watch.page_events_max
        news = self._history.first_news(max(reported, newest - _NEWS_MAX))
        return LiveEvents(
            self._history,
            self._logs.files,
            logs=self._logs_max,
            storm=self._storm,
            after=max(0, min(newest - wanted, newest if news is None else news - 1)),
            joined=self._page.joined,
            causes=self._causes.known,
        )

    def _show(self, events: Sequence[ShownEvent]) -> None:
        self._page.show(events, self._logs.scanned)

    def _explain_again(self, events: Sequence[ExplainedEvent]) -> None:
        """Show and report the present causes of removals that were shown before."""
        if events:
            rows = with_rows(events)
            self._page.explain_again(rows)
            if self._reports is not None:
                self._reports.explain_again(rows)

    def _reported(self) -> int:
        """Return the number of the newest fact that was reported: if messages are made, by the saved incidents."""
        return self._history.newest if self._reports is None else self._reports.explained

    def _check_parts(self) -> None:
        """Raise an error if a part that works beside this one has ended."""
        if not self._page.running:
            raise HeartwheelError("the page has ended by itself", hint="the lines above may tell why")
        if self._reports is not None and not self._reports.alive:
            raise HeartwheelError("messages are made no more", hint="the lines above may tell why")

    def _report(self, events: Sequence[ShownEvent], explained: int) -> None:
        """Count news in the metrics, and make messages of it."""
        if self._reports is not None:
            self._reports.add(events, explained)
        rows = [row for each in events for row in each.rows]
        self._metrics.apply(rows, [event.group_id for event, _ in events if event.kind is Happened.STORM])

    def _troubles(self) -> GroupsInTrouble:
        picture = self._page.picture
        known = picture.log_tells and not picture.log_is_behind
        with picture.lock:
            return groups_in_trouble(picture, self._storm, now_ms=wall_ms(), known=known, present=True)

    def _figures(self) -> LogFigures:
        scanned = self._logs.scanned
        return LogFigures(
            lines=scanned.lines,
            coordinator_lines=scanned.coordinator_lines,
            ignored={
                "forged": scanned.suspicious,
                "unreadable": scanned.unreadable,
                "unknown": scanned.unknown_lines,
                "too_long": scanned.too_long,
            },
            lost=self._logs.lost,
            behind_bytes=self._logs.behind(),
            newest_ms=scanned.last_ms,
            history_bytes=self._history.path.stat().st_size,
        )

    def _trim(self) -> None:
        now_s = time.monotonic()
        if now_s - self._trimmed_s < _TRIM_EVERY_S:
            return
        self._trimmed_s, wanted = now_s, self._settings.watch
        removed = self._history.trim(before_ms=wall_ms() - wanted.keep_ms, bytes_max=wanted.history_bytes_max)
        if removed:
            _log.info("removed %s of the history, too old or too many", count(removed, "line"))
