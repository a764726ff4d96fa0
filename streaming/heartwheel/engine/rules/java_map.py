"""The iteration order of Java's hash maps.

Kafka elects the first member that its `HashMap` yields and prints sets in that order, so the order is part of the
rules. It is by bucket, and within a bucket by insertion.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from heartwheel.wire.partitioner import java_hash

_SMALLEST_TABLE: Final = 16


@lru_cache(maxsize=1 << 16)  # every election hashes the member ids again, in plain Python
def _spread(key: str) -> int:
    h = java_hash(key) & 0xFFFFFFFF
    return h ^ h >> 16


def bucket_of(key: str, table_size: int) -> int:
    """Return the bucket in which a `HashMap` with a table of this size files a string."""
    return _spread(key) & (table_size - 1)


def grown_table_size(entries: int, table_size: int) -> int:
    """Return the table size after an insertion: doubled while more than three quarters full, never shrunk.

    Args:
        entries: the number of entries, the new one included.
        table_size: the table's size before; 0 for a map that has never held anything.
    """
    size = max(table_size, _SMALLEST_TABLE)
    while 4 * entries > 3 * size:
        size *= 2
    return size


def in_map_order(keys: Iterable[str], table_size: int) -> list[str]:
    """Sort keys, given in insertion order, into the iteration order of a `HashMap` with a table of this size."""
    # Python's sort is stable, which keeps the insertion order within a bucket.
    return sorted(keys, key=lambda key: bucket_of(key, table_size))


def in_set_order(keys: Iterable[str]) -> list[str]:
    """Sort keys into the iteration order of a `HashSet` that was filled with only them."""
    listed = list(keys)
    return in_map_order(listed, grown_table_size(len(listed), 0))
