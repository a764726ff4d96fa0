"""A file that one process at a time may have: a lock that ends with its process."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from heartwheel.base.errors import HeartwheelError


@contextlib.contextmanager
def locked_file(file: Path, taken: HeartwheelError) -> Iterator[None]:
    """Lock a file against other processes for the length of a `with` block; it is created if it is missing.

    Args:
        file: its content stays as it is.
        taken: what to raise if another process has the lock.

    Raises:
        OSError: the file cannot be opened.
    """
    with file.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise taken from None
        yield
