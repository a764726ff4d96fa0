"""A broken promise."""

from __future__ import annotations

from typing import NamedTuple


class BrokenPromise(NamedTuple):
    """A broken promise.

    Args:
        promise: the promise, such as `P1`.
    """

    promise: str
    words: str
