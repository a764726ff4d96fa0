"""The data source of the terminal: a picture that a follower keeps up to date."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol, Self

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.top.frame import Frame, frame_of, risk_of
from heartwheel.settings import Settings

_QUIET_S: Final = 1.0
_PATIENCE_S: Final = 10.0


class Frames(Protocol):
    """A source of frames; tests have one of their own."""

    def frame(self, text: str = "") -> Frame:
        """Return a frame of what matches a text."""
        ...

    def at_risk(self, text: str = "") -> list[AtRisk]:
        """Return the members nearest to their expiry; called more often than `frame`."""
        ...


class Watch:
    """A picture that follows the topics for the length of a `with` block.

    Args:
        settings: the whole configuration; window, limits and storms are those of the dashboard.
    """

    def __init__(self, settings: Settings) -> None:
        board = settings.dashboard
        self._bootstrap = settings.kafka.bootstrap_servers
        self._picture = Picture(
            expirations_max=board.expirations_max,
            triggers_max=board.expirations_max,
            window_ms=board.window_ms,
            canary_prefix=settings.canary.group_prefix,
            expected_members=settings.groups.expected_members,
        )
        self._view = View(bootstrap=self._bootstrap, storm=StormRule(board.storm_rebalances, board.storm_window_ms))
        self._changed = threading.Event()
        self._follower = Follower(
            settings,
            since_ms=wall_ms() - board.window_ms,
            tail_max=board.expirations_max,
            on_rows=self._take,
            on_link=self._link,
        )

    def __enter__(self) -> Self:
        self._follower.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.stop()

    def frame(self, text: str = "") -> Frame:
        """Return a frame of what matches a text."""
        return frame_of(self._picture, self._view, now_ms=wall_ms(), text=text)

    def at_risk(self, text: str = "") -> list[AtRisk]:
        """Return the members nearest to their expiry."""
        return risk_of(self._picture, now_ms=wall_ms(), text=text)

    def settle(self) -> None:
        """Wait until the present content of the topics has been read: until nothing new came for a second.

        Raises:
            HeartwheelError: Kafka does not answer.
        """
        give_up_s = time.monotonic() + _PATIENCE_S
        while not self._follower.linked:
            if time.monotonic() > give_up_s:
                hint = "is the broker up, is the address right, does it ask for TLS or a login (security.protocol)?"
                raise HeartwheelError(f"no Kafka answers at {self._bootstrap}", hint=hint)
            self._changed.wait(_QUIET_S / 10)
        while time.monotonic() < give_up_s:
            self._changed.clear()
            if not self._changed.wait(_QUIET_S):
                return

    def _take(self, rows: Sequence[TopicRow]) -> None:
        self._picture.apply(rows, now_ms=wall_ms())
        self._changed.set()

    def _link(self, linked: bool) -> None:  # noqa: FBT001 - the signature of a listener
        self._picture.link(linked, now_ms=wall_ms())
