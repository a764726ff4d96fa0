"""The beat of the server: four times a second it looks what is new, and wakes those who listen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from heartwheel.dashboard.channel import Channel, event_text
from heartwheel.live.now import View
from heartwheel.live.picture import Picture
from heartwheel.live.wheel import wheel_of

FLUSHES_A_S: Final = 4
"""How often a listener is sent something at most."""

LISTENERS_MAX: Final = 200
"""Most listeners at once."""

_log = logging.getLogger(__name__)


class Hub:
    """The channels: one for everybody, and one with the canary's groups for those who ask for them.

    Args:
        picture: what the events are about.
        epoch: names this life of the server.
        view: what the picture is looked at with; called with whether to show the canary's groups.
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
        """Return a channel; that of the canary runs from when it is first asked for."""
        channel = self._channels[canary]
        if canary not in self._wanted or not channel.standing:
            self._wanted.add(canary)
            channel.tell_standing(self._view(canary), self._now_ms())
        return channel

    async def run(self) -> None:
        """Beat until cancelled."""
        beat = 0
        while True:
            await asyncio.sleep(1 / FLUSHES_A_S)
            beat += 1
            try:
                self.tick(standing=beat % FLUSHES_A_S == 0)
            except Exception:  # noqa: BLE001 - one bad row must not silence the stream for good
                _log.exception("the dashboard could not tell what is new")

    def tick(self, *, standing: bool = True) -> None:
        """Look what is new, and wake the listeners.

        Args:
            standing: whether to tell anew how things stand.
        """
        now_ms = self._now_ms()
        for canary in self._wanted:
            self._channels[canary].tell_changes(now_ms)
            if standing:
                self._channels[canary].tell_standing(self._view(canary), now_ms)
        ticked, self._ticked = self._ticked, asyncio.Event()
        ticked.set()

    async def ticks(self) -> None:
        """Wait for the next beat."""
        await self._ticked.wait()

    def close(self) -> None:
        """Send the listeners away; must be called where the server runs."""
        self.closed = True
        self._ticked.set()

    def wheel(self, shard: int, *, canary: bool) -> tuple[int, bytes] | None:
        """Return the wheel of a shard as an event, with the trigger it is of; `None` if nothing is known of it."""
        row = self._picture.status.get(shard)
        if row is None:
            return None
        known = self._wheels.get((shard, canary))
        if known is None or known[0] != row.batch_ms:
            body = wheel_of(self._picture, shard, canary=canary)
            known = self._wheels[shard, canary] = (row.batch_ms, event_text("wheel", body))
        return known
