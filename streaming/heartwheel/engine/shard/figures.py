"""The figures of a shard: its groups by state and kind, its strays, and the members near expiry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heartwheel.engine.shard.handles import member_deadlines
from heartwheel.engine.shard.rules_path import KINDS, STATES
from heartwheel.engine.shard.tables import Table
from timing_wheel import NEVER, LevelOccupancy, TimingWheel, WheelStats


class MemberAtRisk(NamedTuple):
    """One member near its expiry."""

    group_id: str
    member_id: str
    deadline_ms: int
    session_timeout_ms: int


class ShardFigures(NamedTuple):
    """The present figures of a shard."""

    members: Table
    groups: Table
    wheel: TimingWheel

    def groups_by_state(self) -> dict[str, int]:
        """Return the number of groups by state; states without a group are left out."""
        counts = np.bincount(self.groups["state"][self.groups.used()], minlength=len(STATES))
        return {state.value: int(n) for state, n in zip(STATES, counts, strict=True) if n}

    def groups_by_kind(self) -> dict[str, int]:
        """Return the number of groups by kind; kinds without a group are left out."""
        counts = np.bincount(self.groups["kind"][self.groups.used()], minlength=len(KINDS))
        return {kind.value: int(n) for kind, n in zip(KINDS, counts, strict=True) if n}

    def strays(self, most: int) -> dict[str, int]:
        """Return the groups with records outside their first partition and the number of those, most records first."""
        strays = self.groups["strays"]
        rows = np.flatnonzero(strays)
        rows = rows[np.argsort(-strays[rows], kind="stable")[:most]]
        return dict(zip(self.groups.text.ids(rows), strays[rows].tolist(), strict=True))

    def at_risk(self, most: int) -> list[MemberAtRisk]:
        """Return the members nearest to expiry, nearest first."""
        deadlines = member_deadlines(self.wheel, self.members.rows)
        rows = np.argpartition(deadlines, most)[:most] if most < len(deadlines) else np.arange(len(deadlines))
        rows = rows[deadlines[rows] != NEVER]
        rows = rows[np.lexsort((rows, deadlines[rows]))]
        group_ids = self.groups.text.ids(self.members["group"][rows])
        member_ids = self.members.text.ids(rows)
        timeouts = self.members["timeout_ms"][rows]
        found = zip(group_ids, member_ids, deadlines[rows].tolist(), timeouts.tolist(), strict=True)
        return [MemberAtRisk(*row) for row in found]

    def occupancy(self) -> list[LevelOccupancy]:
        """Return the occupancy of each level and slot of the wheel."""
        return self.wheel.occupancy(slots=True)

    @property
    def wheel_stats(self) -> WheelStats:
        """The wheel's counters."""
        return self.wheel.stats
