"""Work beside a test or a benchmark, in a thread."""

from __future__ import annotations

import threading
from typing import Self


class Background:
    """A thread for the length of a block; a subclass has its work in `_run`, until `_over` is set.

    Args:
        daemon: whether the process may end before it.
    """

    def __init__(self, *, daemon: bool = False) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=daemon)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
