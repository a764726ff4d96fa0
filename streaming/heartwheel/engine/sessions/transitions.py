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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.sessions.columns import (
    BY_TIMEOUT,
    NO_REASON,
    NOT_SEEN_MS,
    OF_TABLE,
    REASONS_BEFORE_ROWS,
    TOO_LATE,
    Events,
    Rows,
)
from heartwheel.engine.sessions.config import BACK, CAME, EVENTS, GONE
from heartwheel.engine.sessions.table import Bools, Ints, KeyStatus, KeyTable


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
    steps = _steps(events, table, renewed_ms)
    first, begins = steps.first, steps.begins
    over_after = np.where(steps.timed_out, steps.due, events.time_ms)
    over = np.where(steps.timed_out, steps.due, steps.before(table["due_ms"][events.key], over_after))
    times, is_new = _counted(events, table, first, begins, forgotten=events.time_ms - over >= forget_ms)
    sessions = np.maximum.accumulate(np.where(first | begins, np.arange(len(first)), 0))
    session_first = np.where(begins, events.time_ms, table["first_ms"][events.key])[sessions]
    rows = _joined(_ended(events, table, steps, session_first, times), _begun(events, steps, times, is_new))
    last = np.append(first[1:], True)
    ended_as = np.where(steps.ended, KeyStatus.ENDED, KeyStatus.TIMED_OUT)
    ended_at = np.where(steps.ended, events.time_ms, steps.due)
    timeout_before = steps.before(table["timeout_ms"][events.key], events.timeout_ms)
    return Transitions(
        rows,
        events.key[last],
        np.where(events.ends, ended_as, KeyStatus.ALIVE)[last],
        session_first[last],
        steps.seen_after[last],
        np.where(events.ends, ended_at, steps.due_after)[last],
        np.where(events.ends, timeout_before, events.timeout_ms)[last],
        times[last],
        np.where(events.ends, steps.carry, events.row)[last],
    )


class _Steps(NamedTuple):
    """What each event finds and does.

    Args:
        first: whether it is the first of its key.
        due: the deadline before it, or when the session before was over.
        due_after: the deadline that it sets.
        seen: the last event before it.
        seen_after: the last event of its key from then on.
        carry: the distinct row whose carried values counted before it.
        timed_out: whether the session before it had ended at its deadline.
        ended: whether it ends a session.
        begins: whether it begins one.
        late: whether it is older than the end of the session before.
    """

    first: Bools
    due: Ints
    due_after: Ints
    seen: Ints
    seen_after: Ints
    carry: Ints
    timed_out: Bools
    ended: Bools
    begins: Bools
    late: Bools

    def before(self, of_table: NDArray[Any], of_events: NDArray[Any]) -> Ints:
        """Return what counted before each event."""
        return _before(self.first, of_table, of_events)


def _before(first: Bools, of_table: NDArray[Any], of_events: NDArray[Any]) -> Ints:
    """Return what counted before each event: for the first of a key what the table has, else that of the one before."""
    values: Ints = of_table.astype(np.int64)
    inner = ~first[1:]
    values[1:][inner] = of_events[:-1][inner]
    return values


def _steps(events: Events, table: KeyTable, renewed_ms: int) -> _Steps:
    key, time_ms, ends = events.key, events.time_ms, events.ends
    first = np.append(True, key[1:] != key[:-1])
    status, last_ms = table["status"][key], table["last_ms"][key]
    due_after = np.maximum(time_ms, renewed_ms) + events.timeout_ms
    due = _before(first, table["due_ms"][key], due_after)
    is_open = _before(first, status == KeyStatus.ALIVE, ~ends).astype(np.bool_)
    timed_out = is_open & (time_ms >= due)
    begins = (~is_open | timed_out) & ~ends
    # An end that came behind the deadline is ignored, as it is if the deadline had been noticed before.
    seen_after = np.where(ends & timed_out, _before(first, last_ms, time_ms), time_ms)
    return _Steps(
        first=first,
        due=due,
        due_after=due_after,
        seen=_before(first, last_ms, seen_after),
        seen_after=seen_after,
        carry=_before(first, np.full(len(key), OF_TABLE), events.row),
        timed_out=timed_out,
        ended=ends & is_open & ~timed_out,
        begins=begins,
        late=begins & first & (time_ms < due),  # an event before an orderly end is older than the key's last one
    )


def _ended(events: Events, table: KeyTable, steps: _Steps, session_first: Ints, times: Ints) -> Rows:
    """Return the rows of the sessions that events end, or find ended."""
    rows = Rows(
        key=events.key,
        event=np.full(len(events.key), EVENTS.index(GONE)),
        at_ms=np.where(steps.ended, events.time_ms, steps.due),
        first_ms=steps.before(table["first_ms"][events.key], session_first),
        last_ms=steps.seen,
        deadline_ms=steps.due,
        times=steps.before(table["times"][events.key], times),
        reason=np.where(steps.ended, REASONS_BEFORE_ROWS + events.row, BY_TIMEOUT),
        carry=steps.carry,
    )
    return rows.select(steps.timed_out | steps.ended)


def _begun(events: Events, steps: _Steps, times: Ints, is_new: Bools) -> Rows:
    """Return the rows of the sessions that events begin."""
    rows = Rows(
        key=events.key,
        event=np.where(is_new, EVENTS.index(CAME), EVENTS.index(BACK)),
        at_ms=events.time_ms,
        first_ms=events.time_ms,
        last_ms=np.where(is_new, NOT_SEEN_MS, steps.seen),
        deadline_ms=steps.due_after,
        times=times,
        reason=np.where(steps.late, TOO_LATE, NO_REASON),
        carry=events.row,
    )
    return rows.select(steps.begins)


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


def _joined(one: Rows, other: Rows) -> Rows:
    return Rows(*(np.concatenate(pair).astype(np.int64) for pair in zip(one, other, strict=True)))


def timed_out(keys: Ints, table: KeyTable) -> Rows:
    """Return the rows of sessions that end at their deadlines.

    Args:
        keys: the table's rows of their keys.
        table: it is not changed.
    """
    due, times = table["due_ms"][keys], table["times"][keys].astype(np.int64)
    event, reason = np.full(len(keys), EVENTS.index(GONE)), np.full(len(keys), BY_TIMEOUT)
    first, last, carry = table["first_ms"][keys], table["last_ms"][keys], np.full(len(keys), OF_TABLE)
    return Rows(keys, event, due, first, last, due, times, reason, carry)
