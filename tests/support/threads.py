"""Threads that outlive what started them: they would go on in other people's tests."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

_of_the_run: Final[weakref.WeakSet[threading.Thread]] = weakref.WeakSet()
_POOLED: Final = ("AnyIO worker thread",)
"""Names of threads that a server of the whole run starts when it is asked for something, and keeps for a while."""


@contextmanager
def started_for_the_run() -> Iterator[None]:
    """Take note of the threads that are started meanwhile: they may go on to the end of the run."""
    before = set(threading.enumerate())
    yield
    _of_the_run.update(set(threading.enumerate()) - before)


def left_threads(before: Iterable[threading.Thread], seconds: float = 10) -> list[str]:
    """List the names of threads that are alive, and were not before.

    Args:
        seconds: how long to wait for those to end that are about to.
    """
    until_s = time.monotonic() + seconds
    known = {*before, *_of_the_run, threading.current_thread()}
    new = [each for each in threading.enumerate() if each not in known and not each.name.startswith(_POOLED)]
    for each in new:
        each.join(max(0, until_s - time.monotonic()))
    return sorted(each.name for each in new if each.is_alive())
