"""The ids that were seen lately, in bounded memory: a replay after a crash writes the same ones again (promise P3)."""

from __future__ import annotations


class Seen:
    """A bounded memory of ids.

    Two generations bound the memory: when the young one is full, the old one is dropped. So at least the newest
    `ids_max` ids are known, and at most twice as many are held.

    Args:
        ids_max: how many are certain to be known.
    """

    def __init__(self, ids_max: int) -> None:
        self._ids_max = ids_max
        self._young: set[str] = set()
        self._old: set[str] = set()

    def is_new(self, id_: str) -> bool:
        """Return whether an id was not seen before, and remember it."""
        if id_ in self._old:
            return False
        young = self._young
        before = len(young)
        young.add(id_)
        if len(young) == before:
            return False
        if before >= self._ids_max:
            self._old, self._young = young, {id_}
            young.discard(id_)
        return True

    def __contains__(self, id_: str) -> bool:
        """Return whether an id is known."""
        return id_ in self._old or id_ in self._young

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
