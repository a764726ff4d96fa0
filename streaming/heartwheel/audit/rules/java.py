"""The order in which Java walks through a `HashMap` of strings: who leads, and what is named first, depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=1 << 16)
def spread_hash(text: str) -> int:
    """Compute the hash by which `HashMap` files a string: `String.hashCode`, its upper half folded into the lower."""
    h = 0
    data = text.encode("utf-16-be")
    for at in range(0, len(data), 2):
        h = (31 * h + data[at] * 256 + data[at + 1]) % 2**32
    return h ^ h >> 16


def walk(keys: Iterable[str], buckets: int) -> list[str]:
    """Put keys, which come in the order in which they were filed, into the order of a table of so many buckets."""
    return sorted(keys, key=lambda key: spread_hash(key) % buckets)


def buckets_for(entries: int, buckets: int = 0) -> int:
    """Tell how many buckets a table has with so many entries, that had `buckets` before; it never shrinks."""
    size = max(16, buckets)
    while entries > size * 3 // 4:
        size *= 2
    return size
