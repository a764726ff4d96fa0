"""A broken promise."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """Hold a broken promise.

    Args:
        promise: which one; `audit` for what the audit found.
        words: what is wrong.
    """

    promise: str
    words: str
