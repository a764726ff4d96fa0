"""Find the counterpart of something by name: who was expired and who arrived are read apart, in either order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")


class Unpaired(Generic[T]):
    """Things that have no counterpart yet, the oldest first, found by any of their names.

    A search costs what has the name, not what is kept: a million members may go and come back at once.

    Args:
        kept_max: most that are kept; the oldest goes.
    """

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._newest = 0
        self._kept: dict[int, tuple[T, Collection[str]]] = {}
        self._by_name: dict[str, dict[int, T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, thing: T, names: Collection[str]) -> None:
        """Keep a thing under its names."""
        self._newest += 1
        self._kept[self._newest] = (thing, names)
        for name in names:
            self._by_name.setdefault(name, {})[self._newest] = thing
        if len(self._kept) > self._kept_max:
            self._remove(next(iter(self._kept)))

    def take(self, names: Collection[str], fits: Callable[[T], bool]) -> T | None:
        """Take out the oldest thing that has one of the names and fits; `None` if none does."""
        firsts = []
        for name in names:
            named = self._by_name.get(name)
            if named is not None:
                firsts += [next((number for number, thing in named.items() if fits(thing)), 0)]
        found = min(filter(None, firsts), default=0)
        return self._remove(found) if found else None

    def let_go(self, thing: T) -> None:
        """Forget a thing if it is the oldest one."""
        oldest = next(iter(self._kept), None)
        if oldest is not None and self._kept[oldest][0] is thing:
            self._remove(oldest)

    def _remove(self, number: int) -> T:
        thing, names = self._kept.pop(number)
        for name in names:
            # Two names of one thing may be the same.
            named = self._by_name.get(name, {})
            named.pop(number, None)
            if not named:
                self._by_name.pop(name, None)
        return thing
