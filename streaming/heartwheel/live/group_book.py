"""What is known of each group: its newest rebalances and expirations, and who of its expired members came back."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from heartwheel.live.expiration import Expiration
from heartwheel.live.returns import is_return
from heartwheel.wire.verdicts import TriggerRow

ARRIVALS_MAX: Final = 200
"""Most unclaimed arrivals of a group that are remembered."""

_OPEN_MAX: Final = 1_000


class Arrival(NamedTuple):
    """Hold that somebody joined: when, epoch ms, and under which id."""

    time_ms: int
    member_id: str


class GroupEntry:
    """Hold what is known of one group, the oldest first.

    Args:
        group_id: the group.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.triggers: deque[TriggerRow] = deque()
        self.newest: TriggerRow | None = None
        """The newest row of the triggers topic; kept when the others are too old."""
        self.begun: TriggerRow | None = None
        """The newest row that began a rebalance."""
        self.leader_seen: bool | None = None
        """Whether the newest completed rebalance had a leader, as only those of Kafka's protocol have."""
        self.expirations: deque[Expiration] = deque()
        self.open: deque[Expiration] = deque(maxlen=_OPEN_MAX)
        """Expirations whose member has not come back."""
        self.arrivals: deque[Arrival] = deque(maxlen=ARRIVALS_MAX)
        self.version = 0
        """Rises with every change; see `GroupBook.version`."""

    @property
    def shard(self) -> int | None:
        """The shard that decides about it."""
        newest = self.newest or (self.expirations[-1] if self.expirations else None)
        return newest.shard if newest else None

    def expired(self, expiration: Expiration) -> bool:
        """Take an expiration; tell whether its member is known to be back already.

        Topics are read apart, so the arrival may have been told before the expiration.
        """
        self.expirations.append(expiration)
        for arrival in self.arrivals:
            if arrival.time_ms >= expiration.deadline_ms and is_return(expiration, arrival.member_id):
                self.arrivals.remove(arrival)
                expiration.returned_ms = arrival.time_ms
                return True
        self.open.append(expiration)
        return False

    def triggered(self, row: TriggerRow) -> list[Expiration]:
        """Take a row of the triggers topic; list the expirations whose member came back with it."""
        self.triggers.append(row)
        self.newest = row
        if row.type == "rebalance_triggered":
            self.begun = row
        if row.type == "rebalance_completed":
            self.leader_seen = row.leader is not None
        return [back for member_id in row.joined if (back := self._arrived(Arrival(row.time_ms, member_id)))]

    def _arrived(self, arrival: Arrival) -> Expiration | None:
        for expiration in self.open:
            if arrival.time_ms >= expiration.deadline_ms and is_return(expiration, arrival.member_id):
                self.open.remove(expiration)
                expiration.returned_ms = arrival.time_ms
                return expiration
        self.arrivals.append(arrival)
        return None


class GroupBook:
    """Keep the groups, those that changed last at the end.

    Args:
        groups_max: most groups that are kept.
        triggers_max: most rows of the triggers topic that are kept, of all groups together.
        window_ms: for how long they are, ms.
    """

    def __init__(self, groups_max: int, triggers_max: int, window_ms: int) -> None:
        self._groups_max, self._triggers_max, self._window_ms = groups_max, triggers_max, window_ms
        self.entries: OrderedDict[str, GroupEntry] = OrderedDict()
        self.version = 0
        """Rises with every change of any group."""
        self.forgotten = 0
        """Groups that had to go, as there were too many."""
        self._triggers: deque[tuple[int, GroupEntry]] = deque()

    def touch(self, group_id: str) -> GroupEntry:
        """Find a group, or begin it, and note that it changes."""
        entry = self.entries.get(group_id)
        if entry is None:
            entry = self.entries[group_id] = GroupEntry(group_id)
            if len(self.entries) > self._groups_max:
                self.entries.popitem(last=False)
                self.forgotten += 1
        self.version += 1
        entry.version = self.version
        self.entries.move_to_end(group_id)
        return entry

    def add_trigger(self, row: TriggerRow, append_ms: int) -> list[Expiration]:
        """Take a row of the triggers topic; list the expirations whose member came back with it."""
        entry = self.touch(row.group_id)
        self._triggers.append((append_ms, entry))
        return entry.triggered(row)

    def add_expiration(self, expiration: Expiration) -> bool:
        """Take an expiration; tell whether its member is known to be back already."""
        return self.touch(expiration.group_id).expired(expiration)

    def let_go(self, expiration: Expiration) -> None:
        """Forget an expiration that has left the window."""
        entry = self.entries.get(expiration.group_id)
        # A group that was forgotten and came again holds none of the old ones.
        if entry is not None and entry.expirations and entry.expirations[0] is expiration:
            entry.expirations.popleft()
            if entry.open and entry.open[0] is expiration:
                entry.open.popleft()

    def evict(self, now_ms: int) -> None:
        """Let go of rebalances that are too old or too many."""
        oldest_ms = now_ms - self._window_ms
        while self._triggers and (self._triggers[0][0] < oldest_ms or len(self._triggers) > self._triggers_max):
            self._triggers.popleft()[1].triggers.popleft()

    def changed_after(self, version: int) -> Iterator[GroupEntry]:
        """List the groups that changed after a version, the newest change first."""
        for entry in reversed(self.entries.values()):
            if entry.version <= version:
                return
            yield entry
