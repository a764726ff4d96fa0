"""What was sent lately, numbered, so that a client that was cut off can go on where it was: no gap, no double."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final, NamedTuple

FRAMES_MAX: Final = 5_000
"""Most frames that are kept: at four a second, twenty minutes of them."""

BYTES_MAX: Final = 16 << 20
"""Most bytes that are kept: at a thousand expirations a second, about half a minute of them."""


class Frame(NamedTuple):
    """One event as it is sent.

    Args:
        number: rises by one with each frame.
        seq: number of the newest expiration that was sent up to here.
        data: the event as text of the stream.
    """

    number: int
    seq: int
    data: bytes


class Ring:
    """The newest frames.

    Args:
        frames_max: how many.
        bytes_max: how many bytes of them.
    """

    def __init__(self, frames_max: int = FRAMES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._frames_max, self._bytes_max = frames_max, bytes_max
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self.newest = 0
        """Number of the newest frame; 0 before the first."""

    @property
    def oldest(self) -> int:
        """The smallest number that can be gone on after."""
        return self.newest - len(self._frames)

    def add(self, frame: Frame) -> None:
        """Keep a frame, whose number is the next one, and let the oldest go."""
        self._frames.append(frame)
        self.newest = frame.number
        self._bytes += len(frame.data)
        while len(self._frames) > self._frames_max or (self._bytes > self._bytes_max and len(self._frames) > 1):
            self._bytes -= len(self._frames.popleft().data)

    def after(self, number: int) -> list[Frame] | None:
        """List the frames after a number; `None` if some of them are gone, or the number was never given out."""
        if not self.oldest <= number <= self.newest:
            return None
        return list(islice(self._frames, number - self.oldest, None))

    def bytes_after(self, number: int) -> int:
        """Count the bytes of the frames after a number that is not gone."""
        return sum(len(frame.data) for frame in islice(self._frames, number - self.oldest, None))
