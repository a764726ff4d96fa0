"""Logs of brokers that grow and are rotated in every way, from a seed."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from support.broker_logs import REAL
from support.hostile_lines import EXPIRY, HEAD, LOGGER, SHAPES

BROKEN = f"{HEAD}Member a in group b with a\n{HEAD}{EXPIRY}{LOGGER}\nx has failed, removing it from the group.{LOGGER}"
"""What the broker writes about a client whose id holds a whole line of another group."""


def real_messages(rng: random.Random, *, broker: int = 1) -> list[bytes]:
    """Return the messages of a real log, as of some broker, and among them hostile ones that are whole."""
    text = (REAL / "server.log").read_text().replace("[GroupCoordinator 1]", f"[GroupCoordinator {broker}]")
    messages = text.splitlines()
    for odd in (BROKEN, *(shape(2_000) for shape in SHAPES.values())):
        if odd.endswith(LOGGER):
            messages.insert(rng.randrange(len(messages)), odd)
    return [f"{message}\n".encode("utf-8", "surrogatepass") for message in messages]


class GrowingLog:
    """A log into which a broker writes, and that somebody rotates.

    Args:
        path: of the log.
        messages: what is written, in this order.
        rng: decides how much and how.
    """

    def __init__(self, path: Path, messages: Sequence[bytes], rng: random.Random) -> None:
        self.path, self._left, self._rng = path, list(messages), rng
        self.rotated: list[Path] = []
        self._changed_ns = time.time_ns()
        path.write_bytes(b"")

    @property
    def is_done(self) -> bool:
        """Whether all messages are written."""
        return not self._left

    @property
    def files(self) -> list[str]:
        """The files that there are, the oldest first."""
        return [str(each) for each in (*self.rotated, self.path)]

    def write(self) -> None:
        """Write some messages."""
        self._write(self._rng.choice([1, 3, 60]))

    def _write(self, size: int) -> None:
        with self.path.open("ab") as file:
            file.write(b"".join(self._left[:size]))
        del self._left[:size]
        self._stamp(self.path)

    def _stamp(self, path: Path) -> None:
        """Let a file have changed some time after all others: a file system may have a coarse clock."""
        self._changed_ns += 10_000_000
        os.utime(path, ns=(self._changed_ns, self._changed_ns))

    def rotate(self) -> None:
        """Rename it, or copy and truncate it, and write on; perhaps compress what was rotated before."""
        if not self.path.stat().st_size:
            return
        rotated = self.path.with_name(f"{self.path.name}.{len(self.rotated) + 1:03}")
        if self._rng.random() < 0.3:
            shutil.copyfile(self.path, rotated)
            self._stamp(rotated)
            self.path.write_bytes(b"")
        else:
            self.path.rename(rotated)
            self.path.write_bytes(b"")
        self.rotated.append(rotated)
        self._write(1)
        if len(self.rotated) > 1 and self._rng.random() < 0.5 and self.rotated[-2].suffix != ".gz":
            self._compress(len(self.rotated) - 2)

    def _compress(self, number: int) -> None:
        plain = self.rotated[number]
        packed = plain.with_name(f"{plain.name}.gz")
        with gzip.open(packed, "wb") as file:
            file.write(plain.read_bytes())
        shutil.copystat(plain, packed)
        plain.unlink()
        self.rotated[number] = packed
