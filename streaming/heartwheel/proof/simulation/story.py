"""What happened in a history: counts by name, and on request lines to read."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Story:
    """A record of what happens in a history.

    Args:
        keep_lines: whether lines are kept; without them nothing is formatted.
    """

    def __init__(self, *, keep_lines: bool = False) -> None:
        self.keep_lines = keep_lines
        self.seen: Counter[str] = Counter()
        self._lines: list[tuple[int, int, str]] = []

    def mark(self, name: str) -> None:
        """Count an occurrence."""
        self.seen[name] += 1

    def say(self, true_ms: int, words: str, *values: Any) -> None:
        """Add a line, if lines are kept.

        Args:
            true_ms: when it happened, true ms.
            words: what happened, with `{}` for each value.
            values: the values; they are formatted only if lines are kept.
        """
        if self.keep_lines:
            self._lines.append((true_ms, len(self._lines), words.format(*values)))

    def lines(self) -> list[str]:
        """Return the lines in the order of time; they are added out of order, members before the job."""
        return [f"{true_ms:>9,}  {line}" for true_ms, _, line in sorted(self._lines)]
