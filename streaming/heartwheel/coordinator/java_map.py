"""The order in which Java would walk through its hash maps.

Kafka elects the first member that its `HashMap` yields, and prints sets in that order, so the order is part of the
rules: by bucket, and within one bucket by insertion.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from heartwheel.partitioner import java_hash

_SMALLEST_TABLE: Final = 16


@lru_cache(maxsize=1 << 16)  # member ids are hashed again at every election, and the hash is plain Python
def _spread(key: str) -> int:
    h = java_hash(key) & 0xFFFFFFFF
    return h ^ h >> 16


def bucket_of(key: str, table_size: int) -> int:
    """Tell in which bucket of a table of this size `HashMap` files a string."""
    return _spread(key) & (table_size - 1)


def grown_table(entries: int, table_size: int) -> int:
    """Compute the table size after an insertion: doubled while more than three quarters full, never shrunk.

    Args:
        entries: how many the map holds, the new one included.
        table_size: its size before; 0 for a map that has never held anything.
    """
    size = max(table_size, _SMALLEST_TABLE)
    while 4 * entries > 3 * size:
        size *= 2
    return size


def walked(keys: Iterable[str], table_size: int) -> list[str]:
    """Sort keys, given in insertion order, as a `HashMap` with a table of this size would walk through them."""
    # Python's sort is stable, which keeps the insertion order within a bucket.
    return sorted(keys, key=lambda key: bucket_of(key, table_size))


def walked_set(keys: Iterable[str]) -> list[str]:
    """Sort keys as a `HashSet` that was filled with just them would walk through them."""
    listed = list(keys)
    return walked(listed, grown_table(len(listed), 0))
