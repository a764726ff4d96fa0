"""Pending renewals: outages that have not renewed a group's sessions yet.

Sessions restart at an outage when everything before it has been read, from every partition. Until then the group's
renewal is pending: nothing after the beginning of the outage is applied to it, and none of its timers fires beyond it.

A group may be forgotten in the meantime and begin again with a record that waits. Then the new group has the pending
renewals, as far as the outages come after one of its records.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.group_times import GroupTimes
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.tables import Table
from heartwheel.engine.time import LogTime, Outage

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class PendingRenewals:
    """The outages whose renewal is pending for each group.

    Args:
        groups: the table of groups; its column `renewal_pending` marks those with an entry.
        group_times: how far each group has been read.
        pending: outages by the group's row, the earliest first.
    """

    def __init__(self, groups: Table, group_times: GroupTimes, pending: dict[int, list[Outage]]) -> None:
        self._groups = groups
        self._group_times = group_times
        self._pending = pending
        groups["renewal_pending"][list(pending)] = 1
        rows = self._rows()
        self._ids = dict(zip(rows.tolist(), groups.text.ids(rows), strict=True))
        self._forgotten: dict[str, list[Outage]] = {}

    def state(self) -> dict[int, list[Outage]]:
        """Return the outages by the group's row."""
        return {row: self._pending[row] for row in self._rows().tolist()}

    def cap(self, times: Ints) -> None:
        """Limit every group's time, int64 (groups,), epoch ms, to its first pending outage."""
        for row in self._rows().tolist():
            times[row] = min(times[row], self._pending[row][0].before_ms)

    def cap_entries(self, until: Ints, route: Route) -> None:
        """Limit every entry's time, int64 (entries,), epoch ms, to its group's first pending outage."""
        for row in self._rows().tolist():
            mine = route.group == row
            until[mine] = np.minimum(until[mine], self._pending[row][0].before_ms)

    def add(self, outage: Outage, time: LogTime, decided: Ints) -> Rows:
        """Add an outage for every group that was seen in its partition; return those that can be renewed at once.

        Args:
            outage: the outage; it ends before any record that is applied after this.
            decided: int64 (partitions,), the time up to which each is decided, epoch ms.
        """
        seen = self._group_times.seen_in(outage.partition)
        if outage.group_id:
            ids = zip(seen.tolist(), self._groups.text.ids(seen), strict=True)
            seen = np.array([row for row, group_id in ids if group_id == outage.group_id], np.intp)
        had_records = self._group_times.had_records(seen, outage.partition)
        ready = self._group_times.read_beyond(seen, outage.before_ms, outage.partition, time, decided)
        ready &= self._groups["renewal_pending"][seen] == 0
        late = seen[~ready]
        self._ids |= zip(late.tolist(), self._groups.text.ids(late), strict=True)
        for row in late.tolist():
            self._add_pending(row, [outage])
        return seen[ready & had_records]

    def pop_ready(self, time: LogTime, decided: Ints) -> Iterator[tuple[Rows, Outage]]:
        """Remove the earliest outage of each group of which everything before it has been read by now, and yield it."""
        for row in self._rows().tolist():
            outage, *more = self._pending[row]
            at = np.array([row])
            if self._group_times.read_beyond(at, outage.before_ms, outage.partition, time, decided)[0]:
                self._pending[row] = more
                self._groups["renewal_pending"][row] = bool(more)
                yield at[self._group_times.had_records(at, outage.partition)], outage

    def find_forgotten(self) -> bool:
        """Keep the pending renewals of forgotten groups, before their rows are reused; return whether there were any.

        The waiting records of such a group then wait for one renewal less.
        """
        found = False
        for row in [row for row in self._ids if not self._groups["renewal_pending"][row]]:
            group_id, pending = self._ids.pop(row), self._pending.pop(row)
            if pending:
                self._forgotten[group_id], found = pending, True
        return found

    def carry_over(self, log: BatchLog, route: Route) -> bool:
        """Give the pending renewals of forgotten groups to those that begin again; return whether there were any.

        Args:
            log: records that wait.
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
                self._add_pending(row, [each for each, found in zip(missed, behind, strict=True) if found])
                self._ids[row] = group_id
                carried = True
        return carried

    def _add_pending(self, row: int, outages: list[Outage]) -> None:
        pending = [*(self._pending[row] if self._groups["renewal_pending"][row] else ()), *outages]
        # A partition that is behind may prove an outage that began before the pending ones.
        self._pending[row] = sorted(pending, key=lambda each: (each.before_ms, each.partition))
        self._groups["renewal_pending"][row] = 1

    def _rows(self) -> Rows:
        return np.flatnonzero(self._groups["renewal_pending"]) if self._pending else np.empty(0, np.intp)
