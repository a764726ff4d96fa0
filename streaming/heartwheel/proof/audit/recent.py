"""A memory of the newest keys. It keeps them in two halves and drops the older half at once."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

_SIGN: Final = True


class Recent(msgspec.Struct):
    """A bounded map of keys to numbers; when it is full, the older half is dropped.

    Args:
        young: the newer half.
        old: the older half.
        forgot: number of dropped keys.
    """

    size_max: int
    young: dict[int, int] = {}
    old: dict[int, int] = {}
    forgot: int = 0

    def add(self, key: int, number: int = 0) -> None:
        """Add a key."""
        if len(self.young) * 2 >= self.size_max:
            self.forgot += len(self.old)
            self.young, self.old = {}, self.young
        self.young[key] = number

    def get(self, key: int) -> int | None:
        """Return the number of a key, `None` if it was never added or is forgotten."""
        found = self.young.get(key)
        return self.old.get(key) if found is None else found

    def __contains__(self, key: int) -> bool:
        return key in self.young or key in self.old


def key_of(*parts: object) -> int:
    """Return a 64-bit key of some parts; it is the same in every run."""
    digest = hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=_SIGN)
