"""Renewals that are owed: outages that a group has not been brought up to yet.

Sessions start anew at an outage once everything before it has been read, from whichever partition. Until then the group
is owed the renewal: nothing after the beginning of the outage is applied to it, and none of its timers fires beyond it.

A group may be forgotten meanwhile and begin again with a record that waits. Then what it is owed is that of the group
that begins, as far as the outages are behind a record of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heartwheel.log_time import LogTime, Outage
from heartwheel.shard.fast_path import Route
from heartwheel.shard.group_times import GroupTimes
from heartwheel.shard.log import BatchLog
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
        rows = self._rows()
        self._ids = dict(zip(rows.tolist(), groups.text.ids(rows), strict=True))
        self._forgotten: dict[str, list[Outage]] = {}

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
        if outage.group_id:
            ids = zip(seen.tolist(), self._groups.text.ids(seen), strict=True)
            seen = np.array([row for row, group_id in ids if group_id == outage.group_id], np.intp)
        heard = self._group_times.were_heard(seen, outage.partition)
        ready = self._group_times.read_beyond(seen, outage.before_ms, outage.partition, time, decided)
        ready &= self._groups["owed"][seen] == 0
        late = seen[~ready]
        self._ids |= zip(late.tolist(), self._groups.text.ids(late), strict=True)
        for row in late.tolist():
            self._owe(row, [outage])
        return seen[ready & heard]

    def pay(self, time: LogTime, decided: Ints) -> Iterator[tuple[Rows, Outage]]:
        """Take out the earliest outage of each group of which everything before it has been read by now."""
        for row in self._rows().tolist():
            outage, *more = self._owed[row]
            at = np.array([row])
            if self._group_times.read_beyond(at, outage.before_ms, outage.partition, time, decided)[0]:
                self._owed[row] = more
                self._groups["owed"][row] = bool(more)
                yield at[self._group_times.were_heard(at, outage.partition)], outage

    def find_forgotten(self) -> bool:
        """Note what groups are owed that have been forgotten, before their rows are those of others; tell if any were.

        What waits of such a group waits for one renewal less.
        """
        found = False
        for row in [row for row in self._ids if not self._groups["owed"][row]]:
            group_id, owed = self._ids.pop(row), self._owed.pop(row)
            if owed:
                self._forgotten[group_id], found = owed, True
        return found

    def carry_over(self, log: BatchLog, route: Route) -> bool:
        """Let groups that begin again be owed what they were owed when they were forgotten; tell if there were any.

        Args:
            log: records that wait.
            route: where they go.
        """
        if not self._forgotten:
            return False
        carried = False
        rows = np.unique(route.group[route.group >= 0])
        for row, group_id in zip(rows.tolist(), self._groups.text.ids(rows), strict=True):
            of_group = route.group[log.entry] == row
            partition, at_ms = log.entry_partition[log.entry[of_group]], log.append_ms[of_group]
            missed = self._forgotten.pop(group_id, [])
            behind = [(at_ms[partition == each.partition] <= each.before_ms).any() for each in missed]
            if not all(behind):
                self._forgotten[group_id] = [each for each, found in zip(missed, behind, strict=True) if not found]
            if any(behind):
                self._owe(row, [each for each, found in zip(missed, behind, strict=True) if found])
                self._ids[row] = group_id
                carried = True
        return carried

    def _owe(self, row: int, outages: list[Outage]) -> None:
        owed = [*(self._owed[row] if self._groups["owed"][row] else ()), *outages]
        # A partition that is behind may prove an outage that began before those that are owed already.
        self._owed[row] = sorted(owed, key=lambda each: (each.before_ms, each.partition))
        self._groups["owed"][row] = 1

    def _rows(self) -> Rows:
        return np.flatnonzero(self._groups["owed"]) if self._owed else np.empty(0, np.intp)
