"""What happened in a history: counted by name always, kept as lines where somebody wants to read it."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Story:
    """Note what happens.

    Args:
        keep_lines: whether lines are kept; without them a history costs no formatting.
    """

    def __init__(self, *, keep_lines: bool = False) -> None:
        self.keep_lines = keep_lines
        self.seen: Counter[str] = Counter()
        self._lines: list[tuple[int, int, str]] = []

    def mark(self, name: str) -> None:
        """Count something that happened."""
        self.seen[name] += 1

    def say(self, true_ms: int, words: str, *values: Any) -> None:
        """Keep a line, if lines are kept.

        Args:
            true_ms: when it was, true ms.
            words: what happened, with `{}` for each value.
            values: put in only if the line is kept.
        """
        if self.keep_lines:
            self._lines.append((true_ms, len(self._lines), words.format(*values)))

    def lines(self) -> list[str]:
        """Return the lines in the order of time; members were simulated before the job."""
        return [f"{true_ms:>9,}  {line}" for true_ms, _, line in sorted(self._lines)]
