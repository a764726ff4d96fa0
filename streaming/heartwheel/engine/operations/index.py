"""The rows of a table by hash: sorted arrays for the rows of the state, a dictionary for those that a batch added."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def hash_of(text: str) -> int:
    """Hash an id or a key to a signed 64-bit integer, for an int64 column."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


class HashIndex:
    """Rows by hash. It may return rows that were reused since, so callers compare the row itself.

    Args:
        hashes: int64 (entries,).
        rows: (entries,), the row of each.
    """

    def __init__(self, hashes: Ints, rows: NDArray[Any]) -> None:
        self._unsorted = (hashes, rows.astype(np.int64))
        self._sorted: tuple[Ints, Ints] | None = None
        self._added: dict[int, list[int]] = {}

    def add(self, key: int, row: int) -> None:
        """Add an entry."""
        self._added.setdefault(key, []).append(row)

    def rows(self, key: int) -> Iterator[int]:
        """Yield the rows under a hash, each once, ascending."""
        if self._sorted is None:
            hashes, rows = self._unsorted
            order = np.argsort(hashes, kind="stable")
            self._sorted = hashes[order], rows[order]
        hashes, rows = self._sorted
        start, stop = np.searchsorted(hashes, key, "left"), np.searchsorted(hashes, key, "right")
        yield from sorted({*rows[start:stop].tolist(), *self._added.get(key, ())})

    def entries(self) -> tuple[Ints, Ints]:
        """Return all entries as (hashes, rows)."""
        hashes, rows = self._unsorted
        more = [(key, row) for key, added in self._added.items() for row in added]
        if not more:
            return hashes, rows
        fresh = np.array(more, np.int64)
        return np.concatenate([hashes, fresh[:, 0]]), np.concatenate([rows, fresh[:, 1]])
