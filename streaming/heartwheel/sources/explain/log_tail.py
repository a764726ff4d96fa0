"""Tail a log through rotations and restarts: whole lines, each with its position."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from heartwheel.sources.explain.rotated_log import LINE_BYTES_MAX, RotatedLog, TailPosition


class TailedLine(NamedTuple):
    """One whole line.

    Args:
        text: without its end.
        offset: of its first byte in its file.
    """

    text: bytes
    offset: int


class LogTail:
    """The whole lines of a log that grows and is rotated.

    Args:
        path: of the log.
        position: where to continue; without it, at the end of the log or at its start.
        options: those of `RotatedLog`.

    Raises:
        HeartwheelError: the log cannot be opened.
    """

    def __init__(self, path: Path, position: TailPosition | None = None, **options: Any) -> None:
        self._log = RotatedLog(path, position, **options)
        self._rest, self._at = b"", self._log.at

    @property
    def lost(self) -> bool:
        """Whether lines may be missing before the next one, because the file that was being read is gone."""
        return self._log.lost

    @property
    def position(self) -> TailPosition:
        """Where the next line begins."""
        return self._log.position(self._at)

    def read(self) -> list[TailedLine]:
        """Return the new whole lines, at most some megabytes; none if there are none."""
        data = self._log.read()
        if self._log.is_next:
            self._rest, self._at = b"", 0
        *whole, rest = (self._rest + data).split(b"\n")
        lines = []
        for text in whole:
            lines.append(TailedLine(text, self._at))
            self._at += len(text) + 1
        self._rest = rest
        if len(rest) > LINE_BYTES_MAX:
            self._at, self._rest = self._at + len(rest), b""
        return lines

    def close(self) -> None:
        """Close the file."""
        self._log.close()
