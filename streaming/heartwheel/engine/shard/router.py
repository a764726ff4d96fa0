"""Routing: the member and the group of each distinct value of a batch."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.model import Group
from heartwheel.engine.shard.fast_path import Route
from heartwheel.engine.shard.fingerprints import FingerprintIndex, find_few
from heartwheel.engine.shard.log import BatchLog
from heartwheel.engine.shard.rules_path import group_detail
from heartwheel.engine.shard.tables import FREE, Table
from heartwheel.wire.partitioner import murmur2

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]

_MANY: Final = 4
"""With more members than this for each fingerprint that is looked up, an index of all of them does not pay."""


class Router:
    """Routing of the records of batches, by fingerprint if it is known, otherwise by the group's name.

    Args:
        groups: the table of groups; unknown ones get a row.
    """

    def __init__(self, members: Table, groups: Table, groups_max: int, members_max: int) -> None:
        self._members = members
        self._groups = groups
        self._groups_max = groups_max
        self._members_max = members_max
        self._index: FingerprintIndex | None = None

    def forget(self) -> None:
        """Drop the index, because fingerprints have changed."""
        self._index = None

    def route(self, log: BatchLog) -> Route:
        """Route the records of a batch; an entry without a known fingerprint makes its group busy."""
        member = self.find(log.fingerprint)
        owner = self._members["group"]
        group = np.where(member >= 0, owner[member], FREE).astype(np.intp) if len(owner) else member.copy()
        unknown = np.flatnonzero(member < 0)
        if len(unknown):
            groups, members = len(self._groups) + len(unknown), len(self._members) + len(unknown)
            if groups > self._groups_max or members > self._members_max:
                # The first to arrive gets the last row, in whatever order the map side has sorted its values: a worker
                # that repeats a batch may know some of them (`test_p3_who_comes_first_gets_the_last_group`). Members
                # find room in the order of their groups' rows
                # (`test_p3_new_groups_find_room_for_members_as_they_come`).
                unknown = log.by_first_record(unknown)
            self._name_groups(log, unknown, group)
        busy = np.zeros(self._groups.rows + 1, np.bool_)
        busy[group[unknown]] = True
        busy[-1] = True
        return Route(member, group, busy)

    def find(self, fingerprints: Ints) -> Rows:
        """Return the members whose known heartbeats these are; -1 for none."""
        if self._index is None:
            known = self._members["fingerprint"]
            if _MANY * len(fingerprints) < len(known):
                return find_few(known, fingerprints)
            self._index = FingerprintIndex(known)
        return self._index.find(fingerprints)

    def _name_groups(self, log: BatchLog, entries: Rows, group: Rows) -> None:
        """Fill in the groups of some entries from their values; `FREE` if there is no room for a new one."""
        used = self._groups.used()
        row_of = dict(zip(self._groups.text.ids(used), used.tolist(), strict=True))
        rows = []
        for entry, event in zip(entries.tolist(), log.events(entries), strict=True):
            row = row_of.get(event.group_id, FREE)
            if row == FREE and len(row_of) < self._groups_max:
                row = row_of[event.group_id] = self._create(event.group_id, int(log.entry_partition[entry]))
            rows.append(row)
        group[entries] = rows

    def _create(self, group_id: str, partition: int) -> int:
        row = self._groups.allocate()
        self._groups["state"][row] = 0
        self._groups["partition"][row] = partition
        self._groups["id_hash"][row] = murmur2(group_id.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF
        self._groups.text.write(row, group_id, group_detail(Group(group_id=group_id)))
        return row

    def count_strays(self, log: BatchLog, group: Rows) -> int:
        """Return the number of records that came from another partition than their group's first.

        Args:
            group: (entries,), the groups of its entries.
        """
        if not len(self._groups):
            return 0
        foreign = (group >= 0) & (self._groups["partition"][group] != log.entry_partition)
        if not foreign.any():
            return 0
        records = np.bincount(log.entry, minlength=len(group))
        np.add.at(self._groups["strays"], group[foreign], records[foreign])
        return int(records[foreign].sum())
