"""The dashboard on brokers' logs: the same pages, without Kafka and without an engine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from heartwheel.base.phrases import count, moment
from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.dashboard.app import WriteMetrics
from heartwheel.readers.dashboard.serving import server_of
from heartwheel.readers.http_server.served import Served
from heartwheel.readers.live.lane_page import LaneSource, ReadOlder
from heartwheel.readers.live.lane_store import LaneStore, MemberJoined
from heartwheel.readers.live.picture import Picture
from heartwheel.settings import Settings
from heartwheel.sources.explain.picture import logged_line, show_summary
from heartwheel.sources.explain.scan import Scanned
from heartwheel.sources.explain.shown import ShownEvent, id_of_removal, with_rows
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.wire.explained import ExplainedEvent

_EVERYTHING_MS: Final = 100 * 366 * 86_400_000
_ROWS_MAX: Final = 100_000
_SUM_EVERY_S: Final = 1.0

ROWS_BEFORE_OLDER: Final = 2_500
"""Most expirations in memory if older ones can be read when they are asked for, and twice as many other rows."""

MARKS_BEFORE_OLDER: Final = 10_000
"""Most marks of the timeline in memory likewise."""


LINES_OF_A_TIMELINE: Final = 20_000
"""Most lines that an older timeline is read from, if the page has no more than that in memory."""


class LogPage(Served):
    """A dashboard on brokers' logs, in a thread of its own.

    Args:
        settings: where to listen and who has access: the section `[dashboard]`.
        whole: whether all events of a group are taken, and not only those about some of its members.
        rows_max: most expirations that are kept, and half of the most rows about rebalances.
        metrics: writes the metrics; with `None` none are served.
        follows: whether the logs are followed as they grow.
        older: reads what happened in a time that is older than what is taken here; `None` where nothing is.

    Attributes:
        lanes: what the timeline is drawn from.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        names: Sequence[str],
        *,
        whole: bool = True,
        rows_max: int = _ROWS_MAX,
        metrics: WriteMetrics | None = None,
        follows: bool = False,
        older: ReadOlder | None = None,
    ) -> None:
        rows_max = rows_max if older is None else min(rows_max, ROWS_BEFORE_OLDER)
        self.picture = Picture(expirations_max=rows_max, triggers_max=2 * rows_max, window_ms=_EVERYTHING_MS)
        self.lanes = LaneStore() if older is None else LaneStore(MARKS_BEFORE_OLDER)
        lines_max = max(LINES_OF_A_TIMELINE, settings.watch.page_events_max)
        self._source = self.picture.lanes = LaneSource(self.lanes, follows=follows, older=older, lines_max=lines_max)
        self._names = names
        self._summary, self._summed_s, self._is_stale = LogSummary(whole=whole, follows=follows), 0.0, True
        self._doubted = 0
        self._back: list[ExplainedEvent] = []
        """Removals whose members are back, which may not be shown yet."""
        self.picture.log = self._sentence(None)
        super().__init__(server_of(self.picture, settings, metrics=metrics))

    def take(self, events: Sequence[ExplainedEvent], scanned: Scanned) -> None:
        """Add events to the picture.

        Args:
            events: in the order of time.
            scanned: what was read so far.
        """
        self.show(with_rows(events), scanned)

    def show(self, events: Sequence[ShownEvent], scanned: Scanned) -> None:
        """Add events whose rows are made to the picture, as `take` does."""
        self.picture.log_tells = scanned.coordinator_lines > 0
        if events:
            self.picture.apply([row for each in events for row in each.rows], now_ms=wall_ms())
        for removal in self._back:
            if removal.returned_ms is not None:
                self.picture.returned(id_of_removal(removal), removal.returned_ms)
        self._back.clear()
        with self.picture.lock:
            for event, _ in events:
                self._summary.add(event)
        for event, _ in events:
            self.lanes.add(event)
            line = logged_line(event)
            if line is not None:
                self.picture.add_logged(event.group_id, line)
        doubted = scanned.suspicious + scanned.unreadable
        self._is_stale = self._is_stale or bool(events) or doubted != self._doubted
        self._doubted = doubted
        if not events or time.monotonic() - self._summed_s >= _SUM_EVERY_S:
            self._sum_up(scanned)
        self.picture.log = self._sentence(scanned)

    def joined(self, member: MemberJoined) -> None:
        """Add a member that joins, and note that it is back if the event of its removal does not show that."""
        self.lanes.joined(member)
        if member.removal is not None:
            self.returned(member.removal)

    def returned(self, removal: ExplainedEvent) -> None:
        """Note that the member of a removal is back, which its event does not show as it was taken."""
        with self.picture.lock:
            self._summary.returned(removal)
        self._back.append(removal)
        self._is_stale = True

    def ended(self, scanned: Scanned) -> None:
        """Show as ended what was followed: pipes whose writers are gone. A page that is loaded from now on says so."""
        with self.picture.lock:
            self._summary.follows = False
        self._source.follows = False
        self._is_stale = True
        self.show([], scanned)

    def known_from(self, time_ms: int | None) -> None:
        """Note from when on all events are taken, epoch ms; `None`: from the begin of the logs on."""
        self.lanes.known_from_ms = self._summary.known_from_ms = time_ms
        self.picture.known_from(time_ms)

    def explain_again(self, events: Sequence[ShownEvent]) -> None:
        """Replace the explanations of removals that are shown."""
        self.picture.explain_again([row for each in events for row in each.rows])
        for event, _ in events:
            self.lanes.explain_again(event)

    def _sum_up(self, scanned: Scanned) -> None:
        """Show the totals of all groups; not after each handful of events, because it visits every group."""
        if self._is_stale:
            show_summary(self.picture, self._summary, scanned)
            self._summed_s, self._is_stale = time.monotonic(), False

    def _sentence(self, scanned: Scanned | None) -> str:
        names = ", ".join(self._names[:3]) + (f" and {len(self._names) - 3} more" if len(self._names) > 3 else "")
        if scanned is None:
            return f"Reading the log: {names}."
        last = ""
        if scanned.last_ms is not None:
            zone = "" if scanned.zone_assumed else " UTC"
            last = f", {'newest line of' if self._source.follows else 'up to'} {moment(scanned.last_ms)}{zone}"
        doing = "Following" if self._source.follows else "From"
        whose = "a consumer's own log" if scanned.client_lines and not scanned.coordinator_lines else "the broker's log"
        about = scanned.coordinator_lines + scanned.client_lines
        read = f"{about:,} of {count(scanned.lines, 'line')} {'is' if about == 1 else 'are'} about groups"
        known_ms = self._summary.known_from_ms
        older = "" if known_ms is None else f" What is older than {moment(known_ms)} is in the history."
        return f"{doing} {whose}: {names}{last}. {read}.{older}"
