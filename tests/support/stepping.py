"""A clock that a test moves."""

from __future__ import annotations


class Stepping:
    """A clock that stands still until `now_s` is set."""

    def __init__(self, now_s: float = 1_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        """Return the time, seconds."""
        return self.now_s
