"""The stream of one listener: hello, what it has missed, and from then on what is new, at the hub's beat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from heartwheel.dashboard.channel import Channel, event_text
from heartwheel.dashboard.hub import Hub
from heartwheel.dashboard.ring import Frame
from heartwheel.live.now import Now, now_of
from heartwheel.live.picture import Picture

KEEP_ALIVE_S: Final = 10.0
"""How often a comment is sent at least, so that proxies and listeners see that the stream lives."""

RETRY_MS: Final = 1_000
"""How long a browser waits before it connects again."""

PIECE_BYTES_MAX: Final = 64 << 10
"""Most bytes of frames in one piece, unless one frame has more; the next piece waits for the reader."""

REPLAY_BYTES_MAX: Final = 1 << 20
"""Most bytes that are sent again to a listener that comes back; one that has missed more has to load anew."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The first event of a stream.

    Args:
        epoch: names this life of the server; another one than before means that everything must be loaded anew.
        now: how things stand.
        from_seq: number of the newest expiration that this stream will not tell: what is newer comes.
        resumed: whether the stream goes on where the listener was.
    """

    epoch: str
    now: Now
    from_seq: int
    resumed: bool


class StreamGap(msgspec.Struct, frozen=True, kw_only=True):
    """Why something was left out. What is shown must be loaded anew."""

    reason: str


class Listener:
    """One listener of the stream, and how far it is.

    Args:
        hub: beats.
        picture: for the first look.
        canary: whether to tell of the canary's groups.
        shard: whose wheel to tell; `None` tells none.
        last_id: what it has seen, if it comes back.
        now_ms: wall clock, epoch ms.
    """

    def __init__(
        self, hub: Hub, picture: Picture, *, canary: bool, shard: int | None, last_id: str | None, now_ms: int
    ) -> None:
        self._hub, self._shard, self._canary = hub, shard, canary
        self._channel = hub.channel(canary=canary)
        self._number, self._gap = _resume(self._channel, last_id)
        self._resumed = last_id is not None and not self._gap
        self._standing, self._wheel_ms = self._channel.standing_version, -1
        now = now_of(picture, self._channel.view, now_ms=now_ms)
        self._hello = Hello(
            epoch=self._channel.epoch,
            now=now,
            from_seq=self._seq(),
            resumed=self._resumed,
        )

    async def events(self) -> AsyncGenerator[bytes]:
        """Tell, for as long as somebody listens: at most once a beat, and all that is new in one piece."""
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
            *(data for event, data in self._channel.standing.items() if event != "now"),
            self._news(),
        ]
        return b"".join(parts)

    def _seq(self) -> int:
        if self._number == self._channel.ring.newest:
            return self._channel.seq
        at = self._channel.ring.after(self._number - 1) or ()
        return at[0].seq if at else 0

    def _news(self) -> bytes:
        """Write what is new. A listener too slow for the ring learns that it has missed something, and goes on now."""
        channel, parts = self._channel, list[bytes]()
        frames = channel.ring.after(self._number)
        if frames is None:
            reason = "this connection was too slow for all that happened"
            parts.append(event_text("gap", StreamGap(reason=reason), channel.id_of(channel.ring.newest)))
            self._number = channel.ring.newest
        elif self._take(frames, parts):
            return b"".join(parts)
        if self._standing != channel.standing_version:
            self._standing = channel.standing_version
            parts += channel.standing.values()
        return b"".join([*parts, self._turned()])

    def _take(self, frames: list[Frame], parts: list[bytes]) -> bool:
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
    """Return the frame after which to go on, and why that is not where the listener was, if so."""
    if last_id is None:
        return channel.ring.newest, ""
    number = channel.number_of(last_id)
    if number is None:
        return channel.ring.newest, "the server was started anew since"
    if channel.ring.after(number) is None or channel.ring.bytes_after(number) > REPLAY_BYTES_MAX:
        return channel.ring.newest, "too much has happened since"
    return number, ""
