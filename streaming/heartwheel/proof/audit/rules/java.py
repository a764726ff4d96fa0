"""The iteration order of Java's `HashMap` of strings: the choice of the leader and the order of lists depend on it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=1 << 16)
def spread_hash(text: str) -> int:
    """Return the hash that `HashMap` uses for a string: `String.hashCode`, its upper half folded into the lower."""
    h = 0
    data = text.encode("utf-16-be")
    for at in range(0, len(data), 2):
        h = (31 * h + data[at] * 256 + data[at + 1]) % 2**32
    return h ^ h >> 16


def walk(keys: Iterable[str], buckets: int) -> list[str]:
    """Return keys, given in their order of insertion, in the order of a table with a number of buckets."""
    return sorted(keys, key=lambda key: spread_hash(key) % buckets)


def buckets_for(entries: int, buckets: int = 0) -> int:
    """Return the number of buckets of a table with so many entries, which had `buckets` before; it never shrinks."""
    size = max(16, buckets)
    while entries > size * 3 // 4:
        size *= 2
    return size
