"""One bucket: the handles that are checked together when the clock reaches its first tick."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Entries = NDArray[np.int32]

_SLACK: Final = 64
_EMPTY: Final = np.empty(0, np.int32)


class Bucket:
    """The entries of one slot, in the order of their arrival.

    An entry may be stale: its handle was cancelled or filed elsewhere since. The bucket only counts the live entries;
    the wheel knows which ones they are.

    Args:
        level: level of the wheel, -1 for the overdue bucket.
        virtual_id: number of the bucket since time 0 on its level.
        tick: first tick of the bucket, at which it is flushed.
        entries: its first entries; the array is shared, and never written to. Empty by default.
    """

    __slots__ = ("_buffer", "_length", "level", "live", "tick", "virtual_id")

    def __init__(self, level: int, virtual_id: int, tick: int, entries: Entries = _EMPTY) -> None:
        self.level = level
        self.virtual_id = virtual_id
        self.tick = tick
        self.live = len(entries)
        self._buffer = entries
        self._length = len(entries)

    def __len__(self) -> int:
        return self._length

    @property
    def entries(self) -> Entries:
        """The entries, including stale ones."""
        return self._buffer[: self._length]

    @property
    def crowded(self) -> bool:
        """Whether most entries are stale, so that dropping them is worth its cost."""
        return self._length > 2 * self.live + _SLACK

    def append(self, handles: Entries) -> None:
        """Add entries that are not stale."""
        end = self._length + len(handles)
        self._make_room(end)
        self._buffer[self._length : end] = handles
        self._length = end
        self.live += len(handles)

    def append_one(self, handle: int) -> None:
        """Add one entry that is not stale."""
        self._make_room(self._length + 1)
        self._buffer[self._length] = handle
        self._length += 1
        self.live += 1

    def _make_room(self, length: int) -> None:
        # A full buffer is never reused: it may belong to a snapshot.
        if length > len(self._buffer):
            buffer = np.empty(max(length, 2 * self._length), np.int32)
            buffer[: self._length] = self.entries
            self._buffer = buffer

    def replace(self, handles: Entries) -> None:
        """Replace all entries by the live ones."""
        self._buffer = handles
        self._length = self.live = len(handles)
