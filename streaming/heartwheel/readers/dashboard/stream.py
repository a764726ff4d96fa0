"""The stream of one listener: hello, the missed events, and then all new events at the hub's rate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from heartwheel.readers.dashboard.channel import Channel, event_text
from heartwheel.readers.dashboard.hub import Hub
from heartwheel.readers.dashboard.ring import StreamFrame
from heartwheel.readers.live.now import now_of
from heartwheel.readers.live.now_document import Now
from heartwheel.readers.live.picture import Picture

KEEP_ALIVE_S: Final = 10.0
"""Longest time without a comment, so that proxies and listeners see that the stream is alive."""

RETRY_MS: Final = 1_000
"""How long a browser waits before it connects again."""

PIECE_BYTES_MAX: Final = 64 << 10
"""Most bytes of frames in one piece, unless one frame has more; the next piece waits until this one is read."""

REPLAY_BYTES_MAX: Final = 1 << 20
"""Most bytes that are sent again to a returning listener; one that has missed more has to load everything again."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of a stream.

    Args:
        epoch: names this run of the server; another one than before means that everything must be loaded again.
        now: the present state.
        from_seq: number of the newest expiration that this stream leaves out: newer ones follow.
        resumed: whether the stream resumes where the listener was.
    """

    epoch: str
    now: Now
    from_seq: int
    resumed: bool


class StreamGap(msgspec.Struct, frozen=True, kw_only=True):
    """Why some events were left out. Everything shown must be loaded again."""

    reason: str


class Listener:
    """One listener of the stream, and its position.

    Args:
        hub: the source of the events.
        picture: for the first state.
        canary: whether to include the canary's groups.
        shard: whose wheel to send; `None` sends none.
        last_id: the last id it has seen, if it returns.
        now_ms: wall clock, epoch ms.
    """

    def __init__(
        self, hub: Hub, picture: Picture, *, canary: bool, shard: int | None, last_id: str | None, now_ms: int
    ) -> None:
        self._hub, self._shard, self._canary = hub, shard, canary
        self._channel = hub.channel(canary=canary)
        self._number, self._gap = _resume(self._channel, last_id)
        self._resumed = last_id is not None and not self._gap
        self._state_version, self._wheel_ms = self._channel.state_version, -1
        now = now_of(picture, self._channel.view, now_ms=now_ms)
        self._hello = Hello(
            epoch=self._channel.epoch,
            now=now,
            from_seq=self._seq(),
            resumed=self._resumed,
        )

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield events until the client leaves: at most once per update of the hub, all new events in one piece."""
        self._hub.listeners += 1
        try:
            yield self._first()
            while not self._hub.closed:
                try:
                    async with asyncio.timeout(KEEP_ALIVE_S):
                        news = self._news() if self._is_behind() else b""
                        while not news and not self._hub.closed:
                            await self._hub.ticks()
                            news = self._news()
                except TimeoutError:
                    news = b": still here\n\n"
                yield news
        finally:
            self._hub.listeners -= 1

    def _first(self) -> bytes:
        parts = [f"retry: {RETRY_MS}\n\n".encode()]
        if self._gap:
            parts.append(event_text("gap", StreamGap(reason=self._gap)))
        parts += [
            event_text("hello", self._hello, self._channel.id_of(self._number)),
            *(data for event, data in self._channel.state.items() if event != "now"),
            self._news(),
        ]
        return b"".join(parts)

    def _seq(self) -> int:
        if self._number == self._channel.ring.newest:
            return self._channel.seq
        at = self._channel.ring.after(self._number - 1) or ()
        return at[0].seq if at else 0

    def _news(self) -> bytes:
        """Return the new events. A listener too slow for the ring gets a gap event, and continues from now on."""
        channel, parts = self._channel, list[bytes]()
        frames = channel.ring.after(self._number)
        if frames is None:
            reason = "this connection was too slow for all that happened"
            parts.append(event_text("gap", StreamGap(reason=reason), channel.id_of(channel.ring.newest)))
            self._number = channel.ring.newest
        elif self._take(frames, parts):
            return b"".join(parts)
        if self._state_version != channel.state_version:
            self._state_version = channel.state_version
            parts += channel.state.values()
        return b"".join([*parts, self._turned()])

    def _take(self, frames: list[StreamFrame], parts: list[bytes]) -> bool:
        """Take frames up to the size of a piece, and return whether some are left."""
        size = 0
        for frame in frames:
            if parts and size + len(frame.data) > PIECE_BYTES_MAX:
                return True
            parts.append(frame.data)
            size += len(frame.data)
            self._number = frame.number
        return False

    def _is_behind(self) -> bool:
        return self._number != self._channel.ring.newest

    def _turned(self) -> bytes:
        found = None if self._shard is None else self._hub.wheel(self._shard, canary=self._canary)
        if found is None or found[0] == self._wheel_ms:
            return b""
        self._wheel_ms = found[0]
        return found[1]


def _resume(channel: Channel, last_id: str | None) -> tuple[int, str]:
    """Return the frame after which to resume, and why that is not where the listener was, if so."""
    if last_id is None:
        return channel.ring.newest, ""
    number = channel.number_of(last_id)
    if number is None:
        return channel.ring.newest, "the server has restarted since"
    if channel.ring.after(number) is None or channel.ring.bytes_after(number) > REPLAY_BYTES_MAX:
        return channel.ring.newest, "too much has happened since"
    return number, ""
