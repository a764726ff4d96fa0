"""The wheel's handles, which encode the timer and its row.

A member's timer has the handle `2 * row` of its row in the table of members; a group's own timer has `2 * row + 1` of
its row in the table of groups. No other module does this arithmetic.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from timing_wheel import NEVER, TimingWheel

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]
_RowsT = TypeVar("_RowsT", int, Rows)


def member_handle(rows: _RowsT) -> _RowsT:
    """Return the handles of members' timers."""
    return 2 * rows


def group_handle(rows: _RowsT) -> _RowsT:
    """Return the handles of groups' own timers."""
    return 2 * rows + 1


def handles_max(members: int, groups: int) -> int:
    """Return the number of handles that many rows need."""
    return 2 * max(members, groups)


def groups_of(handles: Ints, member_group: NDArray[np.int32]) -> Rows:
    """Return the group of each timer.

    Args:
        handles: (timers,).
        member_group: (members,), each member's group.
    """
    rows = handles // 2
    of_member = handles % 2 == 0
    rows[of_member] = member_group[rows[of_member]]
    return rows.astype(np.intp, copy=False)


def member_deadlines(wheel: TimingWheel, rows: int) -> Ints:
    """Return the deadlines of the members in the first `rows` rows, epoch ms; `NEVER` without a timer."""
    return _padded(wheel.deadlines()[0::2], rows)


def group_deadlines(wheel: TimingWheel, rows: int) -> Ints:
    """Return the deadlines of the groups' own timers in the first `rows` rows, epoch ms, or `NEVER`."""
    return _padded(wheel.deadlines()[1::2], rows)


def _padded(deadlines: Ints, rows: int) -> Ints:
    # The wheel knows handles only up to the largest one that was ever filed.
    deadlines = deadlines[:rows]
    return deadlines if len(deadlines) == rows else np.append(deadlines, np.full(rows - len(deadlines), NEVER))
