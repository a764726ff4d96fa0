"""The keys of a shard: a row a key, in columns; the key itself and what is carried as Arrow."""

from __future__ import annotations

import bisect
import enum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from heartwheel.engine.shard.tables import FREE, Table
from heartwheel.engine.shard.text import TextTable

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
UNKNOWN: Final = -1
"""Stands for the row of a key that the table does not have."""


class KeyStatus(enum.IntEnum):
    """How the last session of a key stands."""

    ALIVE = 0
    TIMED_OUT = 1
    ENDED = 2


def key_table() -> Table:
    """Return an empty table.

    Columns: `status`; `key` (its hash), `first_ms` and `last_ms` (the first and the last event of the session),
    `due_ms` (its deadline, or when it ended), `timeout_ms`, `times` (how many sessions the key has had).
    """
    return Table(
        {
            "status": (FREE, np.int8),
            "key": (0, np.int64),
            "first_ms": (0, np.int64),
            "last_ms": (0, np.int64),
            "due_ms": (0, np.int64),
            "timeout_ms": (0, np.int64),
            "times": (0, np.int32),
        }
    )


class KeyTable:
    """The keys of a shard.

    Args:
        columns: of `key_table`.
        order: int32 (keys,), the rows in use in the order of their hashes; made if left out.
        keys: the key columns, a row a key.
        carry: likewise what is carried; without columns if nothing is.
    """

    def __init__(
        self,
        columns: Table | None = None,
        order: NDArray[np.int32] | None = None,
        keys: pa.RecordBatch | None = None,
        carry: pa.RecordBatch | None = None,
    ) -> None:
        self.columns = key_table() if columns is None else columns
        self.keys = keys
        self.carry = carry
        self.order: NDArray[np.int32] = self._sorted() if order is None else order

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column, a view."""
        return self.columns[name]

    def find(self, hashes: Ints) -> Ints:
        """Return the row of each hash, `UNKNOWN` where there is none.

        Args:
            hashes: in any order.
        """
        rows = np.full(len(hashes), UNKNOWN, np.int64)
        if len(self.order):
            known = self["key"][self.order]
            # In their order it is about three times as fast: the search stays where the last one was.
            by_hash = np.argsort(hashes)
            wanted = hashes[by_hash]
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found = known[at] == wanted
            rows[by_hash[found]] = self.order[at[found]]
        return rows

    def same_key(self, rows: Ints, keys: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return whether each row's key is this one, and not another one of the same hash.

        Args:
            rows: of the table.
            keys: key columns, one for each of the rows.
        """
        known: Any = self.keys
        return equal_keys(known.take(pa.array(rows)), keys)

    def add(self, hashes: Ints, keys: pa.RecordBatch, carry: pa.RecordBatch | None) -> Ints:
        """Add keys that have no session yet, and return their rows.

        Args:
            hashes: of the keys, each once, none of them known.
            keys: their columns.
            carry: what is carried of them.
        """
        rows: Ints = self.columns.allocate_many(len(hashes)).astype(np.int64)
        self["status"][rows] = KeyStatus.ENDED
        self["key"][rows] = hashes
        self.keys = scattered(self.keys, rows, keys, self.columns.rows)
        if carry is not None:
            self.carry = scattered(self.carry, rows, carry, self.columns.rows)
        self.order = self._sorted()
        return rows

    def write_carry(self, rows: Ints, carry: pa.RecordBatch, room: int) -> tuple[int, int]:
        """Set what is carried of the first of some keys, as far as there is room; the others keep what they had.

        Args:
            rows: of the table, each once.
            carry: a row for each.
            room: how many bytes the table may grow by.

        Returns:
            Of how many keys it is set, and by how many bytes the table has grown.
        """
        known: Any = self.carry
        before, carry = known.take(pa.array(rows)), carry.cast(known.schema)
        if before.equals(carry):
            return len(rows), 0
        fit, grown = fitting(carry, room, before)
        self.carry = scattered(known, rows[:fit], carry.slice(0, fit), self.columns.rows)
        return fit, grown

    def remove(self, rows: Ints) -> None:
        """Remove keys."""
        self.columns.release_many(rows.astype(np.intp))
        self.order = self._sorted()

    def keep(self, rows: Ints) -> None:
        """Renumber: row `rows[i]` becomes row `i`, all others are dropped."""
        self.columns.keep(rows.astype(np.intp))
        self.keys = None if self.keys is None else self.keys.take(pa.array(rows))
        self.carry = None if self.carry is None else self.carry.take(pa.array(rows))
        self.order = self._sorted()

    def _sorted(self) -> NDArray[np.int32]:
        used = self.columns.used()
        return used[np.argsort(self["key"][used], kind="stable")].astype(np.int32)


def fitting(rows: pa.RecordBatch, room: int, before: pa.RecordBatch | None = None) -> tuple[int, int]:
    """Return how many of the first rows there is room for, and how many bytes they add.

    Args:
        rows: in the order in which they are taken.
        room: how many bytes there are for them.
        before: the rows that they replace, whose bytes are free then.
    """

    def added(number: int) -> int:
        freed = 0 if before is None else before.slice(0, number).nbytes
        return int(rows.slice(0, number).nbytes - freed)

    fit = len(rows) if added(len(rows)) <= room else bisect.bisect_right(range(1, len(rows)), room, key=added)
    return fit, added(fit)


def equal_keys(one: pa.RecordBatch, other: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return where two batches of keys have the same key."""
    same = np.ones(len(one), np.bool_)
    for mine, theirs in zip(one.columns, other.columns, strict=True):
        same &= pc.equal(mine, theirs.cast(mine.type)).to_numpy(zero_copy_only=False)
    return same


def scattered(old: pa.RecordBatch | None, rows: Ints, values: pa.RecordBatch, length: int) -> pa.RecordBatch:
    """Return a batch with some rows replaced or added.

    Args:
        old: the batch; `None` for an empty one.
        rows: where the values go, each once.
        values: a row for each.
        length: of the batch that is returned; each row beyond the old ones is among `rows`.
    """
    before = 0 if old is None else len(old)
    source = np.zeros(length, np.int64)
    source[: min(before, length)] = np.arange(min(before, length))
    source[rows] = before + np.arange(len(rows))
    pool = values if old is None else pa.concat_batches([old, values.cast(old.schema)])
    return pool.take(pa.array(source))


def loaded(columns: dict[str, NDArray[Any]]) -> Table:
    """Return a table with the columns that `Table.dump` gave."""
    table = key_table()
    table.load(columns, TextTable())
    return table
