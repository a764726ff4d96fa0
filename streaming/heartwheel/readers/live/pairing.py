"""Find counterparts by name: expirations and arrivals are read separately, in either order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Unpaired(Generic[T]):
    """Things that have no counterpart yet, found by any of their names, the oldest first.

    Things of one name are added in the order of their times, so a search checks the ends and not everything that is
    kept: a million members may leave and come back at once, and those of a group may all have one name.

    Args:
        kept_max: most that are kept; the oldest is dropped.
    """

    def __init__(self, kept_max: int) -> None:
        self._kept_max = kept_max
        self._newest = 0
        # In a plain dictionary, finding the oldest means skipping the places of all that were taken out before it.
        self._kept: OrderedDict[int, tuple[T, Collection[str]]] = OrderedDict()
        self._by_name: dict[str, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, thing: T, names: Collection[str], at_ms: int) -> None:
        """Keep a thing with a time under its names."""
        self._newest += 1
        self._kept[self._newest] = (thing, names)
        for name in names:
            self._by_name.setdefault(name, {})[self._newest] = at_ms
        if len(self._kept) > self._kept_max:
            self._remove(next(iter(self._kept)))

    def take_until(self, names: Collection[str], at_ms: int) -> T | None:
        """Remove and return the oldest thing with one of the names; `None` if there is none until a time."""
        firsts = (next(iter(named.items())) for named in self._named(names))
        return self._take(number for number, first_ms in firsts if first_ms <= at_ms)

    def take_from(self, names: Collection[str], at_ms: int) -> T | None:
        """Remove and return the oldest thing with one of the names since a time; `None` if there is none."""
        found = []
        for named in self._named(names):
            oldest, oldest_ms = next(iter(named.items()))
            if oldest_ms >= at_ms:  # a whole crowd that came back, if departures are read after arrivals
                found.append(oldest)
                continue
            for number, thing_ms in reversed(named.items()):
                if thing_ms < at_ms:
                    break
                found.append(number)
        return self._take(found)

    def let_go(self, thing: T) -> None:
        """Remove a thing if it is the oldest one."""
        oldest = next(iter(self._kept), None)
        if oldest is not None and self._kept[oldest][0] is thing:
            self._remove(oldest)

    def _named(self, names: Collection[str]) -> list[dict[int, int]]:
        return [named for name in names if (named := self._by_name.get(name))]

    def _take(self, numbers: Iterable[int]) -> T | None:
        found = min(numbers, default=None)
        return None if found is None else self._remove(found)

    def _remove(self, number: int) -> T:
        thing, names = self._kept.pop(number)
        for name in set(names):
            named = self._by_name[name]
            del named[number]
            if not named:
                del self._by_name[name]
        return thing
