"""The dashboard on brokers' logs: the pages that are there, with no Kafka and no engine behind them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from heartwheel.dashboard.serving import server_of
from heartwheel.explain.scan import Scanned
from heartwheel.explain.shown import rows_of_log
from heartwheel.http_server.served import Served
from heartwheel.live.picture import Picture
from heartwheel.settings import Settings
from heartwheel.wall_clock import wall_ms
from heartwheel.wire.explained import ExplainedEvent

_EVERYTHING_MS: Final = 100 * 366 * 86_400_000
_ROWS_MAX: Final = 100_000


class LogPage(Served):
    """Serve what brokers' logs tell, in a thread of its own.

    Args:
        settings: where to listen, and who may look: the section `[dashboard]`.
        names: of the logs.

    Raises:
        SettingsError: files that the settings name cannot be used.
    """

    def __init__(self, settings: Settings, names: Sequence[str]) -> None:
        self.picture = Picture(expirations_max=_ROWS_MAX, triggers_max=2 * _ROWS_MAX, window_ms=_EVERYTHING_MS)
        self._names = names
        self._follows = False
        self.picture.log = self._sentence(None)
        super().__init__(server_of(self.picture, settings))

    def take(self, events: Sequence[ExplainedEvent], scanned: Scanned, *, follows: bool = False) -> None:
        """Show more events.

        Args:
            events: in the order of time.
            scanned: what was read so far.
            follows: whether the logs are followed.
        """
        self._follows = follows
        if events:
            self.picture.apply(list(rows_of_log(events)), now_ms=wall_ms())
        self.picture.log = self._sentence(scanned)

    def _sentence(self, scanned: Scanned | None) -> str:
        names = ", ".join(self._names[:3]) + (f" and {len(self._names) - 3} more" if len(self._names) > 3 else "")
        if scanned is None:
            return f"Reading the broker's log: {names}."
        last = ""
        if scanned.last_ms is not None:
            last = f", up to {datetime.fromtimestamp(scanned.last_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        doing = "Following" if self._follows else "From"
        read = f"{scanned.coordinator_lines:,} of {scanned.lines:,} lines are about groups"
        return f"{doing} the broker's log: {names}{last}. {read}."
