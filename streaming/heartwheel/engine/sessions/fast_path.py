"""Keys whose session only continues: nearly all events of nearly all batches, without a sort.

If all events of a key in a batch are newer than its last event, and older than the deadline that it had before them,
its session continues in whatever order they come, as each can only put the deadline off. So only the newest counts.
`tests/sessions/test_cuts.py` checks that both ways give the same.
"""

from __future__ import annotations

import numpy as np

from heartwheel.engine.sessions.columns import NO_ROWS, OF_TABLE, Events
from heartwheel.engine.sessions.table import Bools, Ints, KeyStatus, KeyTable
from heartwheel.engine.sessions.transitions import Transitions


def continued(
    events: Events, table: KeyTable, hashes: Ints, *, renewed_ms: int, with_carry: bool
) -> tuple[Transitions, Events]:
    """Return what becomes of the keys that only go on, and the events of all others.

    Args:
        events: in any order, all with one timeout; at least one.
        table: it is not changed.
        hashes: int64 (distinct rows,): of rows of one time the one with the greatest hash is carried.
        renewed_ms: the end of the last outage.
        with_carry: whether anything is carried.
    """
    key, time_ms, rows = events.key, events.time_ms, table.columns.rows
    newest, oldest = np.full(rows, np.iinfo(np.int64).min), np.full(rows, np.iinfo(np.int64).max)
    np.maximum.at(newest, key, time_ms)
    np.minimum.at(oldest, key, time_ms)
    ends = np.zeros(rows, np.bool_)
    ends[key[events.ends]] = True
    goes_on: Bools = (table["status"] == KeyStatus.ALIVE) & ~ends
    # A key that an earlier start of the query gave another timeout takes this one over by the rules of `transitions`.
    goes_on &= table["timeout_ms"] == events.timeout_ms[0]
    goes_on &= (oldest >= table["last_ms"]) & (newest < table["due_ms"]) & (newest >= oldest)
    keys = np.flatnonzero(goes_on)
    carry = np.full(rows, OF_TABLE)
    if with_carry:
        last = np.flatnonzero(time_ms == newest[key])
        last = last[np.argsort(hashes[events.row[last]], kind="stable")]
        carry[key[last]] = events.row[last]  # the last write stays
    newest, timeout_ms = newest[keys], table["timeout_ms"][keys]
    due = np.maximum(newest, renewed_ms) + timeout_ms
    status, first_ms, times = table["status"][keys], table["first_ms"][keys], table["times"][keys]
    changes = Transitions(NO_ROWS, keys, status, first_ms, newest, due, timeout_ms, times, carry[keys])
    return changes, events.select(~goes_on[key])
