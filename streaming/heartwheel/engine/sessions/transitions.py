"""What events do to the sessions of their keys, for many keys at once.

The rules, for one key, in the order of time:

- A session begins with an event, and each event of it moves its deadline to the event's time plus the timeout.
- An event at or after the deadline is of a new session; the old one has ended at its deadline.
- An event that `ends` marks ends the session at its time. It begins none: of a key without a session it is ignored.
- An event that is older than the last one of its key, or than an end by such an event, changes nothing.
- An event that is newer than the last one and older than the end *by timeout* of its session comes too late for it:
  it begins a new session, whose row says so.

`tests/sessions/oracle.py` has the same rules as a loop over events.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.sessions.table import Ints, KeyStatus, KeyTable

Bools = NDArray[np.bool_]

OF_TABLE: Final = -1
"""Stands for what the table carries of a key, where else a distinct row is named."""

NO_REASON: Final = 0
BY_TIMEOUT: Final = 1
TOO_LATE: Final = 2
REASONS_BEFORE_ROWS: Final = 3
"""Reasons are numbers: these, and from here on that of a distinct row."""

NOT_SEEN_MS: Final = -(1 << 62)
"""Stands for a time that a row has not."""


class Events(NamedTuple):
    """Events of keys that the table has, in the order of row, then time.

    Args:
        key: the table's row of each event's key.
        time_ms: its time, epoch ms.
        row: which distinct row it is.
        ends: whether it ends a session.
        timeout_ms: of the session from then on, ms.
    """

    key: Ints
    time_ms: Ints
    row: Ints
    ends: Bools
    timeout_ms: Ints

    def select(self, chosen: Bools | Ints) -> Events:
        """Return some of the events."""
        return Events(
            self.key[chosen], self.time_ms[chosen], self.row[chosen], self.ends[chosen], self.timeout_ms[chosen]
        )


class Rows(NamedTuple):
    """Rows of the output as columns.

    Args:
        key: the table's row of the key.
        event: place in `config.EVENTS`.
        at_ms: when it happened.
        first_ms: first event of the session.
        last_ms: the last event before; `NOT_SEEN_MS` of a key that is new.
        deadline_ms: of the session.
        times: its number.
        reason: see `REASONS_BEFORE_ROWS`.
        carry: the distinct row whose carried values count, or `OF_TABLE`.
    """

    key: Ints
    event: Ints
    at_ms: Ints
    first_ms: Ints
    last_ms: Ints
    deadline_ms: Ints
    times: Ints
    reason: Ints
    carry: Ints


class Transitions(NamedTuple):
    """What events do.

    Args:
        rows: of the output.
        keys: the table's rows that change, each once, and below what becomes of each.
        status: `KeyStatus`.
        first_ms: see `key_table`.
        last_ms: likewise.
        due_ms: likewise.
        timeout_ms: likewise.
        times: likewise.
        carry: the distinct row whose carried values count from now on, or `OF_TABLE` for no change.
    """

    rows: Rows
    keys: Ints
    status: Ints
    first_ms: Ints
    last_ms: Ints
    due_ms: Ints
    timeout_ms: Ints
    times: Ints
    carry: Ints


def transitions(events: Events, table: KeyTable, *, renewed_ms: int, forget_ms: int) -> Transitions | None:
    """Return what events do to a table; `None` if they change nothing.

    Args:
        events: each at or before the time up to which the table is to be advanced.
        table: it is not changed.
        renewed_ms: the end of the last outage: sessions run from then on at the earliest.
        forget_ms: how long after its end a key is remembered.
    """
    events = _effective(events, table)
    if not len(events.key):
        return None
    key, time_ms, row, ends, timeout_ms = events
    first = np.append(True, key[1:] != key[:-1])
    inner = ~first[1:]
    alive = table["status"][key] == KeyStatus.ALIVE
    due_after = np.maximum(time_ms, renewed_ms) + timeout_ms

    def before(of_table: NDArray[Any], of_events: NDArray[Any]) -> Ints:
        """Return for each event what counted before it: for the first of a key, what the table has."""
        values: Ints = of_table.astype(np.int64)
        values[1:][inner] = of_events[:-1][inner]
        return values

    due = before(table["due_ms"][key], due_after)
    seen = before(table["last_ms"][key], time_ms)
    carry = before(np.full(len(key), OF_TABLE), row)
    is_open = before(alive.astype(np.int64), ~ends).astype(np.bool_)
    timed_out = is_open & (time_ms >= due)
    begins = (~is_open | timed_out) & ~ends
    ended = ends & is_open & ~timed_out
    # An end that came behind the deadline is ignored, as it is if the deadline had been noticed before.
    seen_after = np.where(ends & timed_out, seen, time_ms)
    seen = before(table["last_ms"][key], seen_after)

    over_after = np.where(timed_out, due, time_ms)
    over = np.where(timed_out, due, before(table["due_ms"][key], over_after))
    times, is_new = _counted(events, table, first, begins, forgotten=time_ms - over >= forget_ms)
    late = begins & first & ~alive & (table["status"][key] == KeyStatus.TIMED_OUT) & (time_ms < due)

    sessions = np.maximum.accumulate(np.where(first | begins, np.arange(len(key)), 0))
    session_first = np.where(begins, time_ms, table["first_ms"][key])[sessions]
    first_before = before(table["first_ms"][key], session_first)
    times_before = before(table["times"][key], times)

    reason = np.where(late, TOO_LATE, NO_REASON)
    of_end = np.where(ended, REASONS_BEFORE_ROWS + row, BY_TIMEOUT)
    event = np.where(is_new, 1, 2)
    last_seen = np.where(is_new, NOT_SEEN_MS, seen)
    gone = timed_out | ended
    at_end = np.where(ended, time_ms, due)
    rows = _joined(
        Rows(key, np.zeros(len(key), np.int64), at_end, first_before, seen, due, times_before, of_end, carry), gone,
        Rows(key, event, time_ms, time_ms, last_seen, due_after, times, reason, row), begins,
    )  # fmt: skip
    last = np.append(first[1:], True)
    status = np.where(~ends, KeyStatus.ALIVE, np.where(ended, KeyStatus.ENDED, KeyStatus.TIMED_OUT))
    due_at_last = np.where(~ends, due_after, np.where(ended, time_ms, due))
    return Transitions(
        rows,
        key[last],
        status[last],
        session_first[last],
        seen_after[last],
        due_at_last[last],
        np.where(ends, before(table["timeout_ms"][key], timeout_ms), timeout_ms)[last],
        times[last],
        np.where(ends, carry, row)[last],
    )


def _effective(events: Events, table: KeyTable) -> Events:
    """Leave out events that change nothing."""
    status, last_ms = table["status"][events.key], table["last_ms"][events.key]
    # An event as old as the last one of a session may carry other values; of a session that is over it is a duplicate.
    is_old = (events.time_ms < last_ms) | ((events.time_ms == last_ms) & (status != KeyStatus.ALIVE))
    is_old &= table["times"][events.key] > 0
    if is_old.any():
        events = events.select(~is_old)
    if not events.ends.any():
        return events
    # Ends of keys without a session: those before the first other event of a key, and those right behind an end.
    first = np.append(True, events.key[1:] != events.key[:-1])[: len(events.key)]
    lives = np.cumsum(~events.ends)
    before_key: Ints = (lives - ~events.ends)[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
    leading = events.ends & (lives == before_key) & (table["status"][events.key] != KeyStatus.ALIVE)
    again = np.append(False, events.ends[1:] & events.ends[:-1] & ~first[1:])
    return events.select(~(leading | again))


def _counted(events: Events, table: KeyTable, first: Bools, begins: Bools, *, forgotten: Bools) -> tuple[Ints, Bools]:
    """Return the number of the session that each event is of, and which events begin the first of a key."""
    known = table["times"][events.key].astype(np.int64)
    begun = np.cumsum(begins)
    # A key that nothing was known of, or that was forgotten, begins to count anew.
    fresh = begins & (forgotten | (first & (known == 0)))
    origins = np.maximum.accumulate(np.where(first | fresh, np.arange(len(first)), 0))
    origin = np.where(fresh, begun - 1, begun - begins - known)
    return (begun - origin[origins]).astype(np.int64), fresh


def _joined(gone: Rows, is_gone: Bools, begun: Rows, begins: Bools) -> Rows:
    pairs = zip(gone, begun, strict=True)
    return Rows(*(np.concatenate((ended[is_gone], began[begins])).astype(np.int64) for ended, began in pairs))
