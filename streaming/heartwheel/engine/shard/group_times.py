"""The time of every group: the moment up to which everything sent to it has been read.

A group is read from the partition that its id hashes to, and from every partition where it was seen. Those differ if
the topic has grown, or if producers choose partitions in another way. The group's time is the least of theirs. So a
partition without time holds back only its own groups.

An outage renews the sessions of the groups that had records *applied* from its partition before it, since the groups
began. A record that waits, or that came before the group was forgotten, does not count.

A group whose events a feed relays is read from that feed instead of a partition (`heartwheel.engine.time.feeds`). A
*source* then takes the role of a partition here, and the times of all sources are indexed by their numbers. A group
that has been silent since a moment may have moved to another broker, whose feed is behind. So its timers run beyond
that moment only as far as every feed has come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.tables import Table
from heartwheel.engine.time import LogTime
from heartwheel.engine.time.feeds import FIRST_SOURCE
from heartwheel.engine.time.log_time import MOVED_MS_MAX, UNKNOWN_MS
from heartwheel.wire.partitioner import murmur2
from timing_wheel import TIME_MS_MAX

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class GroupTimes:
    """The partitions from which each group is read.

    Args:
        elsewhere: the partitions where a group was seen besides its first, by the group's row.
        sources: the partitions from which records of those groups were applied, likewise.
    """

    def __init__(self, groups: Table, elsewhere: dict[int, list[int]], sources: dict[int, list[int]]) -> None:
        self._groups = groups
        self._elsewhere = elsewhere
        # Older state does not tell these apart: a group had records applied wherever it was seen.
        self._sources_of = {row: [int(groups["partition"][row]), *found] for row, found in elsewhere.items()} | sources

    def elsewhere(self) -> dict[int, list[int]]:
        """Return the partitions where groups were seen besides their first, by the group's row."""
        return self._of_rows(self._elsewhere)

    def sources(self) -> dict[int, list[int]]:
        """Return the partitions from which records were applied, for groups seen in several, by their row."""
        return self._of_rows(self._sources_of)

    def _of_rows(self, found: dict[int, list[int]]) -> dict[int, list[int]]:
        # A row that was released has no other partitions any more, whichever group has it now.
        flags = self._groups["elsewhere"]
        return {row: partitions for row, partitions in found.items() if row < len(flags) and flags[row]}

    def note(self, log: BatchLog, route: Route) -> None:
        """Add the partitions where groups are seen besides their first."""
        group = route.group
        foreign = np.flatnonzero((group >= 0) & (self._groups["partition"][group] != log.entry_partition))
        for row, partition in zip(group[foreign].tolist(), log.entry_partition[foreign].tolist(), strict=True):
            if not self._groups["elsewhere"][row]:
                self._groups["elsewhere"][row] = 1
                self._elsewhere[row] = [partition]
                # A group without a time has only records that wait.
                began = self._groups["seen_ms"][row] > UNKNOWN_MS
                self._sources_of[row] = [int(self._groups["partition"][row])] if began else []
            elif partition not in self._elsewhere[row]:
                self._elsewhere[row].append(partition)

    def add_sources(self, log: BatchLog, route: Route) -> None:
        """Add the partitions of records that need no rules; their groups are not forgotten between them."""
        if not self._elsewhere:
            return
        # It has one more element than groups, read by entries without a group, which are busy.
        several = np.append(self._groups["elsewhere"] != 0, False)
        entries = np.flatnonzero(several[route.group] & ~route.busy[route.group])
        for row, partition in zip(route.group[entries].tolist(), log.entry_partition[entries].tolist(), strict=True):
            if partition not in self._sources_of[row]:
                self._sources_of[row].append(partition)

    def sources_of(self, row: int) -> list[int] | None:
        """Return the partitions of a group's applied records, to be changed in place; `None` if there is only one."""
        return self._sources_of[row] if self._groups["elsewhere"][row] else None

    def had_records(self, rows: Rows, partition: int) -> NDArray[np.bool_]:
        """Return which of some groups (intp (n,)) seen in a partition had records applied from it."""
        several = self._groups["elsewhere"][rows] != 0
        had_records = (not several[at] or partition in self._sources_of[row] for at, row in enumerate(rows.tolist()))
        return np.fromiter(had_records, np.bool_, len(rows)) if several.any() else ~several

    def seen_in(self, partition: int) -> Rows:
        """Return the groups that were seen in a partition."""
        seen = self._groups["partition"] == partition
        for row, found in self.elsewhere().items():
            seen[row] |= partition in found
        return np.flatnonzero(seen & (self._groups["state"] >= 0))

    def times(self, time: LogTime, decided: Ints) -> Ints:
        """Return the time of every group.

        Args:
            decided: int64 (sources,), the time up to which each is decided, epoch ms.

        Returns:
            int64 (groups,), epoch ms; meaningless for free rows.
        """
        if not time.count:
            return np.full(self._groups.rows, UNKNOWN_MS, np.int64)
        first = self._groups["partition"]
        times: Ints = decided[first]
        homeless = self._homeless(time, self._groups["seen_ms"]) | (first < 0)
        for count in (time.count, *time.former):
            home = np.where(homeless, first, self._groups["id_hash"] % count)
            times = np.minimum(times, decided[home])
        for row, found in self.elsewhere().items():
            sources = time.awaited(self._sources(row))
            times[row] = decided[sources].min() if first[row] < 0 else min(times[row], decided[found].min())
        for row, held in self._held(time).items():
            times[row] = min(times[row], held)
        if len(time.feeds) > 1:
            # A group's own feed shows it up to its last record. Then it may have moved to the broker of another feed.
            fed = first < 0
            reached_ms = np.maximum(self._groups["seen_ms"][fed], time.reached_by_feeds(decided))
            times[fed] = np.minimum(times[fed], reached_ms)
        return times

    def until(self, log: BatchLog, route: Route, time: LogTime, decided: Ints) -> Ints:
        """Return the time up to which the records of each entry may be applied, because all before them has been read.

        Equal times are ordered by partition: partitions before the entry's own must have been read to a later time,
        those behind it to the same time.

        Args:
            decided: int64 (sources,), the time up to which each is decided, epoch ms.

        Returns:
            int64 (entries,), epoch ms.
        """
        own = log.entry_partition
        until = decided[own]
        group = route.group
        known = self._from_several(own, group, time)
        rows = group[known]
        first = self._groups["partition"][rows]
        mine = own[known]
        homeless = self._homeless(time, self._groups["seen_ms"][rows]) | (first < 0)
        for count in (time.count, *time.former):
            home = self._groups["id_hash"][rows] % count
            waits = (home != mine) & ~homeless
            until[known] = np.where(waits, np.minimum(until[known], decided[home] - (home < mine)), until[known])
        # If a group's record comes from another partition than its first, `note` has added both.
        several = known[self._groups["elsewhere"][rows] != 0]
        sources = {row: time.awaited(self._sources(row)) for row in np.unique(group[several]).tolist()}
        for entry in several.tolist():
            others = sources[int(group[entry])]
            if own[entry] not in others:
                until[entry] = TIME_MS_MAX  # its feed is closed, so no mark will follow
            for other in others:
                if other != own[entry]:
                    until[entry] = min(until[entry], decided[other] - (other < own[entry]))
        for row, held in self._held(time).items():
            until[group == row] = np.minimum(until[group == row], held)
        return until

    def _from_several(self, own: Ints, group: Rows, time: LogTime) -> Rows:
        """Return the entries whose time depends on other partitions than their own; mostly there are none."""
        groups = self._groups
        first = groups["partition"]
        at_home = groups["elsewhere"] == 0
        homeless = self._homeless(time, groups["seen_ms"])
        for count in (time.count, *time.former):
            at_home &= homeless | (groups["id_hash"] % count == first)
        # It has one more element than groups, read by entries without a group, which are never among them.
        only = np.append(np.where(at_home, first, -1), -1)
        return np.flatnonzero((only[group] != own) & (group >= 0))

    def read_beyond(
        self, rows: Rows, moment_ms: int, partition: int, time: LogTime, decided: Ints
    ) -> NDArray[np.bool_]:
        """Return the groups of which everything up to a moment has been read, apart from one partition.

        Args:
            rows: intp (n,), the groups.
            partition: that partition, which has been read further.
            decided: int64 (sources,), the time up to which each is decided, epoch ms.
        """
        beyond = decided > moment_ms
        beyond[partition] = True
        for at in range(len(time.feeds)):
            beyond[FIRST_SOURCE - at] |= time.is_closed(FIRST_SOURCE - at)
        groups = self._groups
        first = groups["partition"][rows]
        found: NDArray[np.bool_] = beyond[first]
        homeless = self._homeless(time, groups["seen_ms"][rows]) | (first < 0)
        for count in (time.count, *time.former):
            found &= homeless | beyond[groups["id_hash"][rows] % count]
        for at in np.flatnonzero(groups["elsewhere"][rows]).tolist():
            found[at] &= bool(beyond[self._elsewhere[int(rows[at])]].all())
        return found

    def _sources(self, row: int) -> list[int]:
        """Return the sources where a group was seen."""
        more = self._elsewhere[row] if self._groups["elsewhere"][row] else []
        return [int(self._groups["partition"][row]), *more]

    def _held(self, time: LogTime) -> dict[int, int]:
        """Return the groups that a feed holds back, by their row, each with the time at which it is held, epoch ms."""
        found: dict[int, int] = {}
        groups = self._groups
        for at, feed in enumerate(time.feeds):
            for group_id, held_ms in feed.held.items():
                id_hash = murmur2(group_id.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
                rows = np.flatnonzero((groups["id_hash"] == id_hash) & (groups["state"] >= 0))
                for row, known in zip(rows.tolist(), groups.text.ids(rows), strict=True):
                    if known == group_id and FIRST_SOURCE - at in time.awaited(self._sources(row)):
                        found[row] = min(held_ms, found.get(row, held_ms))
        return found

    @staticmethod
    def _homeless(time: LogTime, seen_ms: Ints) -> NDArray[np.bool_]:
        """Return the groups that are written to another partition than their id says, long after the topic grew."""
        return seen_ms >= time.grown_ms + MOVED_MS_MAX
