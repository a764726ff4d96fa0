"""Arrivals that are no return so far: an expiration that is read later may be of the same member."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from heartwheel.readers.live.returns import Arrival

ARRIVALS_MAX: Final = 2_000
"""How many of the newest arrivals are kept for expirations that are read later: two topics have no common order."""


class NewestArrivals:
    """The newest arrivals, by group.

    Args:
        arrivals: the oldest first.
    """

    def __init__(self, arrivals: Iterable[Arrival] = ()) -> None:
        # Groups are in the order of their newest arrival, so that the group that was quiet for longest is dropped.
        self._by_group: OrderedDict[str, list[Arrival]] = OrderedDict()
        self._count = 0
        for arrival in arrivals:
            self.add(arrival)

    def __iter__(self) -> Iterator[Arrival]:
        for arrivals in self._by_group.values():
            yield from arrivals

    def of(self, group_id: str) -> Sequence[Arrival]:
        """Return the arrivals of a group, the oldest first."""
        return tuple(self._by_group.get(group_id, ()))

    def add(self, arrival: Arrival) -> None:
        """Add an arrival; if there are too many, the oldest of the group that was quiet for longest goes."""
        self._by_group.setdefault(arrival.group_id, []).append(arrival)
        self._by_group.move_to_end(arrival.group_id)
        self._count += 1
        if self._count > ARRIVALS_MAX:
            self.remove(next(iter(self)))

    def remove(self, arrival: Arrival) -> None:
        """Remove an arrival."""
        arrivals = self._by_group[arrival.group_id]
        arrivals.remove(arrival)
        self._count -= 1
        if not arrivals:
            del self._by_group[arrival.group_id]
