"""Logs of containers as their runtimes keep them: entries with a time, in files that are rotated."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime
from typing import Final

SECOND_NS: Final = 1_000_000_000


class KeptLog:
    """The log of one container.

    Args:
        id: of the container.
        begin_s: the time of its first entries, epoch s.
    """

    def __init__(self, id_: str, begin_s: int = 1_795_000_000) -> None:
        self.id, self.now_ns = id_, begin_s * SECOND_NS
        self.change = threading.Condition()
        self.entries: list[tuple[int, bytes]] = []
        self.kept_from = 0
        """The first entry that is not in a file that was rotated away."""
        self.is_running = True

    def write(self, text: bytes, rng: random.Random | None = None) -> None:
        """Write lines; with a source of chance their times rise by nothing, little or much, or step back a little."""
        with self.change:
            for line in (each + b"\n" for each in text.split(b"\n")[:-1]):
                step = rng.choice([0, 0, 1, 70, -40, SECOND_NS // 3, 2 * SECOND_NS]) if rng else 1_000
                in_second = self.now_ns % SECOND_NS
                self.now_ns += step if step > -in_second else 0
                self.entries.append((self.now_ns, line))
            self.change.notify_all()

    def rotate(self) -> None:
        """Begin with another file; what was written before cannot be asked for any more."""
        with self.change:
            self.kept_from = len(self.entries)

    def end(self) -> None:
        """End the container."""
        with self.change:
            self.is_running = False
            self.change.notify_all()

    @property
    def text(self) -> bytes:
        """All that it wrote."""
        return b"".join(line for _, line in self.entries)


def stamped(at_ns: int, line: bytes) -> bytes:
    """Return a line with its time before it."""
    moment = datetime.fromtimestamp(at_ns // SECOND_NS, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ns % SECOND_NS:09d}Z ".encode() + line
