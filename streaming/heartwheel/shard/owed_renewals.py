"""Renewals that are owed: outages that a group has not been brought up to yet.

Sessions start anew at an outage once everything before it has been read, from whichever partition. Until then the group
is owed the renewal: nothing after the beginning of the outage is applied to it, and none of its timers fires beyond it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heartwheel.log_time import LogTime, Outage
from heartwheel.shard.fast_path import Route
from heartwheel.shard.group_times import GroupTimes
from heartwheel.shard.tables import Table

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class OwedRenewals:
    """The outages that each group is owed a renewal for.

    Args:
        groups: the table of groups; its column `owed` marks those with an entry.
        group_times: tells how far each has been read.
        owed: outages by the group's row, the earliest first.
    """

    def __init__(self, groups: Table, group_times: GroupTimes, owed: dict[int, list[Outage]]) -> None:
        self._groups = groups
        self._group_times = group_times
        self._owed = owed

    def state(self) -> dict[int, list[Outage]]:
        """Return the outages by the group's row."""
        return {row: self._owed[row] for row in self._rows().tolist()}

    def cap(self, times: Ints) -> None:
        """Let no group's time, int64 (groups,), epoch ms, pass the beginning of an outage that it is owed."""
        for row in self._rows().tolist():
            times[row] = min(times[row], self._owed[row][0].before_ms)

    def cap_entries(self, until: Ints, route: Route) -> None:
        """Let no entry's time, int64 (entries,), epoch ms, pass the beginning of an outage that its group is owed."""
        for row in self._rows().tolist():
            mine = route.group == row
            until[mine] = np.minimum(until[mine], self._owed[row][0].before_ms)

    def add(self, outage: Outage, time: LogTime, decided: Ints) -> Rows:
        """Note an outage for every group that was seen in its partition; return those that can be renewed at once.

        Args:
            outage: it ends before any record that is applied after this.
            time: of the partitions.
            decided: int64 (partitions,), up to where each is decided, epoch ms.
        """
        seen = self._group_times.seen_in(outage.partition)
        ready = self._group_times.read_beyond(seen, outage.before_ms, outage.partition, time, decided)
        ready &= self._groups["owed"][seen] == 0
        for row in seen[~ready].tolist():
            owed = [*(self._owed[row] if self._groups["owed"][row] else ()), outage]
            # A partition that is behind may prove an outage that began before those that are owed already.
            self._owed[row] = sorted(owed, key=lambda each: (each.before_ms, each.partition))
            self._groups["owed"][row] = 1
        return seen[ready]

    def pay(self, time: LogTime, decided: Ints) -> Iterator[tuple[Rows, Outage]]:
        """Take out the earliest outage of each group of which everything before it has been read by now."""
        for row in self._rows().tolist():
            outage, *more = self._owed[row]
            at = np.array([row])
            if self._group_times.read_beyond(at, outage.before_ms, outage.partition, time, decided)[0]:
                self._owed[row] = more
                self._groups["owed"][row] = bool(more)
                yield at, outage

    def _rows(self) -> Rows:
        return np.flatnonzero(self._groups["owed"]) if self._owed else np.empty(0, np.intp)
