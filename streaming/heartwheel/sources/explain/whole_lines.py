"""Blocks of whole lines, cut from bytes as they come, with a limit on the length of a line."""

from __future__ import annotations

from typing import Final

LINE_BYTES_MAX: Final = 64 << 20
"""Longest line that is read, bytes; a longer one is counted and left out."""


class WholeLines:
    """Whole lines of a stream.

    Args:
        bytes_max: longest line, bytes.

    Attributes:
        too_long: how many lines were longer and left out; an empty line replaces each.
    """

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._skips = False
        self.too_long = 0

    @property
    def skips(self) -> bool:
        """Whether it is in a line that is too long."""
        return self._skips

    def __len__(self) -> int:
        """Return how many bytes of a line have come that is not whole yet."""
        return self._begun_bytes

    def add(self, data: bytes) -> bytes:
        """Add bytes, and return the lines that are whole now; none if no line ends in them."""
        if self._skips:
            at = data.find(b"\n")
            if at < 0:
                return b""
            data, self._skips = data[at:], False
        end = data.rfind(b"\n") + 1
        if end:
            block = b"".join((*self._begun, data[:end]))
            self._begun, self._begun_bytes = [], 0
            data = data[end:]
        else:
            block = b""
        if data:
            self._begin(data)
        return block

    def end(self) -> bytes:
        """Return the last line, which has no end; what is added next is of another file."""
        last = b"".join(self._begun)
        self._begun, self._begun_bytes, self._skips = [], 0, False
        return last

    def _begin(self, data: bytes) -> None:
        self._begun.append(data)
        self._begun_bytes += len(data)
        if self._begun_bytes > self._bytes_max:
            self._begun, self._begun_bytes, self._skips = [], 0, True
            self.too_long += 1
