"""The clock of the server: four times a second it looks for changes and wakes the listeners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from heartwheel.readers.dashboard.channel import Channel, event_text
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.wheel import wheel_of

FLUSHES_A_S: Final = 4
"""The number of updates per second."""

LISTENERS_MAX: Final = 200
"""Most listeners at once."""

_log = logging.getLogger(__name__)


class Hub:
    """The channels: one for everyone, and one that includes the canary's groups.

    Args:
        picture: the source of the events.
        epoch: names this run of the server.
        view: returns the parameters for showing the picture; called with whether to show the canary's groups.
        now_ms: the wall clock, epoch ms.
    """

    def __init__(
        self, picture: Picture, *, epoch: str, view: Callable[[bool], View], now_ms: Callable[[], int]
    ) -> None:
        self._picture, self._view, self._now_ms = picture, view, now_ms
        self._channels = {canary: Channel(picture, epoch, view(canary)) for canary in (False, True)}
        self._wanted = {False}
        self._ticked = asyncio.Event()
        self._wheels: dict[tuple[int, bool], tuple[int, bytes]] = {}
        self.listeners = 0
        self.closed = False

    def channel(self, *, canary: bool) -> Channel:
        """Return a channel; that of the canary runs from the first request for it."""
        channel = self._channels[canary]
        if canary not in self._wanted or not channel.state:
            self._wanted.add(canary)
            channel.update_state(self._view(canary), self._now_ms())
        return channel

    async def run(self) -> None:
        """Update the channels until cancelled."""
        beat = 0
        while True:
            await asyncio.sleep(1 / FLUSHES_A_S)
            beat += 1
            try:
                self.tick(state=beat % FLUSHES_A_S == 0)
            except Exception:  # noqa: BLE001 - one bad row must not silence the stream for good
                _log.exception("the dashboard could not tell what is new")

    def tick(self, *, state: bool = True) -> None:
        """Update the channels, and wake the listeners.

        Args:
            state: whether to update the present state, too.
        """
        now_ms = self._now_ms()
        for canary in self._wanted:
            self._channels[canary].add_changes(now_ms)
            if state:
                self._channels[canary].update_state(self._view(canary), now_ms)
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()

    async def ticks(self) -> None:
        """Wait for the next update."""
        await self._ticked.wait()

    def close(self) -> None:
        """Close all streams; must be called in the server's event loop."""
        self.closed = True
        self._ticked.set()

    def wheel(self, shard: int, *, canary: bool) -> tuple[int, bytes] | None:
        """Return a shard's wheel as an event, with the time of its trigger; `None` if the shard is unknown."""
        row = self._picture.status.get(shard)
        if row is None:
            return None
        known = self._wheels.get((shard, canary))
        if known is None or known[0] != row.batch_ms:
            body = wheel_of(self._picture, shard, canary=canary)
            known = self._wheels[shard, canary] = (row.batch_ms, event_text("wheel", body))
        return known
