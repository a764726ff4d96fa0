"""Restarting sessions after an outage, most of them with a few array operations.

A member whose heartbeats take the fast path has only a session (`Member.fingerprint`), so its timer is one write.
Groups with any other timer, and those with a timer that had run out before the outage, go through the rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.rules.model import GroupState
from heartwheel.engine.shard.handles import group_deadlines, member_deadlines, member_handle
from heartwheel.engine.shard.rules_path import STATES
from heartwheel.engine.shard.tables import Table
from timing_wheel import NEVER, TimingWheel

Rows = NDArray[np.intp]

_STABLE = STATES.index(GroupState.STABLE)
_REBALANCING = [STATES.index(GroupState.PREPARING_REBALANCE), STATES.index(GroupState.COMPLETING_REBALANCE)]


class Renewal(NamedTuple):
    """The renewals that were done at once, and the groups that need the rules.

    Args:
        members: the number of members whose sessions were restarted.
        busy: intp (n,), the groups that are left to the rules, ascending.
    """

    members: int
    busy: Rows


def renew_sessions(
    rows: Rows, before_ms: int, after_ms: int, *, members: Table, groups: Table, wheel: TimingWheel
) -> Renewal:
    """Restart the sessions of groups that need no rule for it.

    Args:
        rows: intp (n,), the groups.
        before_ms: when the outage began, epoch ms.
        after_ms: when it ended, epoch ms.
    """
    touched = np.zeros(groups.rows + 1, np.bool_)  # free rows read the last element
    touched[rows] = True
    owner = members["group"]
    deadlines = member_deadlines(wheel, members.rows)
    armed = touched[owner] & (deadlines != NEVER)
    plain = armed & (members["fingerprint"] != 0) & (deadlines > before_ms)
    busy = np.zeros(groups.rows + 1, np.bool_)
    busy[owner[armed & ~plain]] = True
    busy[:-1] |= touched[:-1] & np.isin(groups["state"], _REBALANCING)
    group_timer = group_deadlines(wheel, groups.rows)
    busy[:-1] |= touched[:-1] & (group_timer <= before_ms)
    # A group may be stable and still wait for SyncGroups.
    busy[:-1] |= touched[:-1] & (groups["state"] == _STABLE) & (group_timer != NEVER)
    done = np.flatnonzero(plain & ~busy[owner])
    renewed = after_ms + members["timeout_ms"][done].astype(np.int64)
    wheel.file(member_handle(done), np.maximum(renewed, deadlines[done]))
    return Renewal(len(done), np.flatnonzero(busy[:-1]))
