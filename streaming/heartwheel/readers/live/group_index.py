"""The newest rebalances and expirations of each group, and which expired members came back."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Final

from heartwheel.readers.live.expiration import FROM_A_LOG, Expiration
from heartwheel.readers.live.group_entry import GroupEntry, with_row, without_first
from heartwheel.readers.live.logged import LoggedLine
from heartwheel.readers.live.pairing import Unpaired
from heartwheel.readers.live.returns import Arrival, arrivals_of, back_from_ms, names_come, names_gone
from heartwheel.wire.status import ListedGroup, RebalancingGroup, StatusRow
from heartwheel.wire.verdict_rows import TriggerRow

ARRIVALS_MAX: Final = 20_000
"""Most arrivals that are remembered without being a return, and no more than rows: two topics have no common order."""

OPEN_MAX: Final = 20_000
"""Most expirations whose return is waited for."""


class GroupIndex:
    """The groups by id, those that changed last at the end.

    Args:
        groups_max: most groups that are kept.
        triggers_max: most rows of the triggers topic that are kept, of all groups together, and most lines of logs.
        window_ms: for how long they are kept, ms.
        expected: how many members each group should have, by its id.
    """

    def __init__(self, groups_max: int, triggers_max: int, window_ms: int, expected: Mapping[str, int]) -> None:
        self._expected = expected
        self._groups_max, self._triggers_max, self._window_ms = groups_max, triggers_max, window_ms
        self.entries: OrderedDict[str, GroupEntry] = OrderedDict()
        self.version = 0
        """Rises with every change of any group."""
        self.forgotten = 0
        """The number of groups that were dropped because there were too many."""
        self.known_from_ms: int | None = None
        """From when on it has all rows and lines that were not too old, epoch ms; `None`: from the first on."""
        self._triggers: deque[tuple[int, GroupEntry]] = deque()
        self._lines: deque[tuple[int, GroupEntry]] = deque()
        self._open = Unpaired[Expiration](OPEN_MAX)
        """Expirations whose member has not come back, the newest of all groups."""
        self._arrivals = Unpaired[Arrival](min(ARRIVALS_MAX, triggers_max))  # with its names one takes a kilobyte
        self._rebalancing: dict[int, set[str]] = {}
        """The groups of each shard whose rebalance a status row names, or has yet to name."""
        self._status_ms: dict[int, int] = {}
        self._running: dict[int, dict[str, RebalancingGroup]] = {}
        self._listed_version = 0

    def touch(self, group_id: str) -> GroupEntry:
        """Return a group, a new one if it is not known, and note that it changes."""
        entry = self.entries.get(group_id)
        if entry is None:
            entry = self.entries[group_id] = GroupEntry(group_id, self._expected.get(group_id))
            if len(self.entries) > self._groups_max:
                self._forget(self.entries.popitem(last=False)[1])
        self.version += 1
        entry.version = self.version
        self.entries.move_to_end(group_id)
        return entry

    def _forget(self, entry: GroupEntry) -> None:
        self.forgotten += 1
        times = [each.append_ms for each in entry.expirations] + [line.time_ms for line in entry.lines]
        times += [] if entry.newest is None else [entry.newest.time_ms]
        self._note_dropped(max(times, default=-1))

    def _note_dropped(self, time_ms: int) -> None:
        self.known_from_ms = max(self.known_from_ms or 0, time_ms + 1)  # others of that moment may be gone, too

    def add_line(self, group_id: str, line: LoggedLine) -> None:
        """Add a line of a broker's log that is no row of a topic."""
        entry = self.touch(group_id)
        entry.lines = with_row(entry.lines, line)
        self._lines.append((line.time_ms, entry))
        if len(self._lines) > self._triggers_max:
            time_ms, entry = self._lines.popleft()
            entry.lines = without_first(entry.lines)
            self._note_dropped(time_ms)

    def add_trigger(self, row: TriggerRow, append_ms: int) -> list[Expiration]:
        """Add a row of the triggers topic; return the expirations whose `returned_ms` changed with it."""
        entry = self.touch(row.group_id)
        self._triggers.append((append_ms, entry))
        entry.triggered(row)
        # Topics are read separately: the status row of this batch, or of a later one, may have been read before.
        if row.detected_ms <= self._status_ms.get(row.shard, -1):
            entry.running = self._running[row.shard].get(row.group_id)
        else:
            fresh = row.type == "rebalance_completed" and row.leader is not None
            entry.is_fresh = fresh and row.shard != FROM_A_LOG  # no status row follows a row of a broker's log
            self._rebalancing.setdefault(row.shard, set()).add(row.group_id)
        if row.joined:
            entry.came = row, [back for arrival in arrivals_of(row) for back in self._arrived(arrival)]
            return entry.came[1]
        return [] if entry.came is None else self._take_back(row, *entry.came)

    def take_status(self, row: StatusRow) -> None:
        """Apply a shard's status row: the state of its rebalances, and the groups that it has."""
        self._status_ms[row.shard] = row.batch_ms
        running = self._running[row.shard] = {group.group_id: group for group in row.rebalancing}
        before = self._rebalancing.get(row.shard, set())
        later = {name for name in before if self._is_later(name, row.batch_ms)}
        self._rebalancing[row.shard] = running.keys() | later
        for group_id in (before | running.keys()) - later:
            rebalance = running.get(group_id)
            entry = self.entries.get(group_id)
            if entry is None and rebalance is None:
                continue
            if entry is None or entry.running != rebalance or entry.is_fresh:
                entry = self.touch(group_id)
                entry.running, entry.is_fresh = rebalance, False
        for group in row.listed:
            self._list(group, row.shard)

    def _is_later(self, group_id: str, batch_ms: int) -> bool:
        entry = self.entries.get(group_id)
        return entry is not None and entry.newest is not None and entry.newest.detected_ms > batch_ms

    def _list(self, group: ListedGroup, shard: int) -> None:
        entry = self.entries.get(group.group_id)
        if entry is None:
            if len(self.entries) >= self._groups_max:
                return  # groups with known events are of more use
            entry = self.entries[group.group_id] = GroupEntry(group.group_id, self._expected.get(group.group_id))
            # Nothing has happened to it, so it is last in the order of changes, and listeners are not notified.
            self._listed_version -= 1
            entry.version = self._listed_version
            self.entries.move_to_end(group.group_id, last=False)
        entry.listed, entry.listed_shard = group, shard

    def add_expiration(self, expiration: Expiration) -> bool:
        """Add an expiration; return whether its member is known to be back already.

        Topics are read separately, so the arrival may have been read before the expiration.
        """
        self.touch(expiration.group_id).expired(expiration)
        arrival = self._arrivals.take_from(names_gone(expiration), back_from_ms(expiration))
        if arrival is None:
            self._wait_for(expiration)
            return False
        _note_return(expiration, arrival)
        return True

    def _wait_for(self, expiration: Expiration) -> None:
        self._open.add(expiration, names_gone(expiration), back_from_ms(expiration))

    def _arrived(self, arrival: Arrival) -> list[Expiration]:
        """Return the expirations that end with an arrival: all of its member id, or the oldest of its client."""
        same, client = names_come(arrival)
        # A member that fails again and again before its first heartbeat has one expiration for each failure.
        found = list(iter(lambda: self._open.take_until((same,), arrival.time_ms), None))
        if not found and (oldest := self._open.take_until((client,), arrival.time_ms)):
            found = [oldest]
        if not found:
            self._arrivals.add(arrival, (same, client), arrival.time_ms)
        for expiration in found:
            _note_return(expiration, arrival)
        return found

    def _take_back(self, row: TriggerRow, came: TriggerRow, ended: list[Expiration]) -> list[Expiration]:
        """Return the expirations that did not end: their member was out in the moment in which it arrived.

        The rules let a worker arrive that fails before its first heartbeat, so each failure of a batch job that only
        reports failures comes with an arrival.
        """
        if (row.time_ms, row.removed) != (came.time_ms, came.joined):
            return []
        for arrival in arrivals_of(came):
            self._arrivals.take_from(names_come(arrival)[:1], arrival.time_ms)
        for expiration in ended:
            expiration.returned_ms = None
            self._wait_for(expiration)
        return ended

    def let_go(self, expiration: Expiration) -> None:
        """Remove an expiration that has left the window."""
        self._open.let_go(expiration)
        entry = self.entries.get(expiration.group_id)
        # A group that was dropped and has come again holds none of the old ones.
        if entry is not None and entry.expirations and entry.expirations[0] is expiration:
            entry.expirations = without_first(entry.expirations)

    def evict(self, now_ms: int) -> None:
        """Remove rebalances that are too old or too many."""
        oldest_ms = now_ms - self._window_ms
        while self._triggers and (self._triggers[0][0] < oldest_ms or len(self._triggers) > self._triggers_max):
            time_ms, entry = self._triggers.popleft()
            if time_ms >= oldest_ms:
                self._note_dropped(time_ms)
            entry.triggers = without_first(entry.triggers)

    def changed_after(self, version: int) -> Iterator[GroupEntry]:
        """Yield the groups that changed after a version, the newest change first."""
        for entry in reversed(self.entries.values()):
            if entry.version <= version:
                return
            yield entry


def _note_return(expiration: Expiration, arrival: Arrival) -> None:
    """Note when a member was back, unless its log has said that: a rebalance that names it begins a moment later."""
    if expiration.returned_ms is None:
        expiration.returned_ms = arrival.time_ms
