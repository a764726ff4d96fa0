"""The frames sent lately, numbered, so that a client that was cut off can resume without gaps and duplicates."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, NamedTuple

FRAMES_MAX: Final = 5_000
"""Most frames that are kept: at four a second, twenty minutes of them."""

BYTES_MAX: Final = 4 << 20
"""Most bytes that are kept: at a thousand expirations a second, about half a minute of them."""


class StreamFrame(NamedTuple):
    """One event as it is sent.

    Args:
        number: rises by one with each frame.
        seq: number of the newest expiration that was sent up to this frame.
        data: the event as text of the stream.
    """

    number: int
    seq: int
    data: bytes


class Ring:
    """The newest frames.

    Args:
        frames_max: how many are kept.
        bytes_max: how many bytes of them.
    """

    def __init__(self, frames_max: int = FRAMES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._frames_max, self._bytes_max = frames_max, bytes_max
        self._frames: deque[StreamFrame] = deque()
        self._bytes = 0
        self.newest = 0
        """Number of the newest frame; 0 before the first."""

    @property
    def oldest(self) -> int:
        """The smallest number that can be resumed after."""
        return self.newest - len(self._frames)

    def add(self, frame: StreamFrame) -> None:
        """Add a frame, whose number is the next one, and drop the oldest ones."""
        self._frames.append(frame)
        self.newest = frame.number
        self._bytes += len(frame.data)
        while len(self._frames) > self._frames_max or (self._bytes > self._bytes_max and len(self._frames) > 1):
            self._bytes -= len(self._frames.popleft().data)

    def after(self, number: int) -> list[StreamFrame] | None:
        """Return the frames after a number; `None` if some of them were dropped, or the number was never used."""
        if not self.oldest <= number <= self.newest:
            return None
        return list(islice(self._frames, number - self.oldest, None))

    def bytes_after(self, number: int) -> int:
        """Return the number of bytes in the frames after a number, none of which was dropped."""
        return sum(len(frame.data) for frame in islice(self._frames, number - self.oldest, None))
