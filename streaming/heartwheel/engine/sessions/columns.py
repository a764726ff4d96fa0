"""Events and rows of the output as columns."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from heartwheel.engine.sessions.table import Bools, Ints

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

    def select(self, chosen: Bools) -> Rows:
        """Return some of the rows."""
        return Rows(*(column[chosen] for column in self))


NO_ROWS: Final = Rows(*(np.empty(0, np.int64) for _ in Rows._fields))
"""Not one row."""


def in_order(events: Events, hashes: Ints) -> Ints:
    """Return the order of events by key and time; of one key and time, ends come last.

    Args:
        events: in any order.
        hashes: int64 (distinct rows,), by which events that are otherwise equal are sorted, so that a repeated batch
            has the same order.
    """
    key, time_ms = events.key, events.time_ms
    if not len(key):
        return np.empty(0, np.int64)
    base = int(time_ms.min())
    span = int(time_ms.max()) - base + 1
    if int(key.max()) < (1 << 62) // span:
        mixed = key * span + (time_ms - base)
        order = np.argsort(mixed, kind="stable")
        mixed = mixed[order]
        if not ((mixed[1:] == mixed[:-1]) & (events.row[order][1:] != events.row[order][:-1])).any():
            return order
    return np.lexsort((hashes[events.row], events.ends, time_ms, key))
