"""The two tables of a shard: members and groups, in columns.

Fields that every heartbeat changes are NumPy columns; fields that only the rules use are a detail in a `TextTable`.
Deadlines are in neither: the wheel has them, under the handles of `heartwheel.engine.shard.handles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.text import TextTable

FREE: Final = -1
"""The value of a table's `owner` column in a row that is not in use."""

Rows = NDArray[np.intp]


class Table:
    """Rows in columns, with a free list.

    Args:
        columns: name to (initial value, dtype); the first column distinguishes used rows from free ones, which have
            `FREE`.
    """

    def __init__(self, columns: Mapping[str, tuple[int, type[np.generic]]]) -> None:
        self._defaults = columns
        self._owner = next(iter(columns))
        self._columns: dict[str, NDArray[Any]] = {
            name: np.full(16, default, dtype) for name, (default, dtype) in columns.items()
        }
        self._free: list[int] = []
        self.rows = 0
        self.text = TextTable()

    def __len__(self) -> int:
        """Return the number of rows in use."""
        return self.rows - len(self._free)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column, a view of `rows` values."""
        return self._columns[name][: self.rows]

    def allocate(self) -> int:
        """Return the number of a free row, which is now in use, with its columns at their initial values."""
        if self._free:
            return self._free.pop()
        if self.rows == self._capacity:
            self._grow(self.rows + 16)
        self.rows += 1
        return self.rows - 1

    def allocate_many(self, count: int) -> Rows:
        """Return the numbers of free rows, as so many calls of `allocate` do."""
        again = self._free[: -count - 1 : -1]
        del self._free[len(self._free) - len(again) :]
        fresh = range(self.rows, self.rows + count - len(again))
        if fresh.stop > self._capacity:
            self._grow(fresh.stop)
        self.rows = fresh.stop
        return np.array([*again, *fresh], np.intp)

    @property
    def _capacity(self) -> int:
        return len(self._columns[self._owner])

    def _grow(self, rows: int) -> None:
        missing = max(rows, 2 * self._capacity) - self._capacity
        for name, (default, dtype) in self._defaults.items():
            self._columns[name] = np.concatenate([self._columns[name], np.full(missing, default, dtype)])

    def release(self, row: int) -> None:
        """Release a row."""
        for name, (default, _) in self._defaults.items():
            self._columns[name][row] = default
        self._free.append(row)

    def release_many(self, rows: Rows) -> None:
        """Release rows, each once."""
        for name, (default, _) in self._defaults.items():
            self._columns[name][rows] = default
        self._free += rows.tolist()

    def drop_free_text(self) -> None:
        """Drop the ids and details of free rows; otherwise they stay until their row is used again."""
        for row, row_id in zip(self._free, self.text.ids(self._free), strict=True):
            if row_id:
                self.text.write(row, "", b"")

    def used(self) -> Rows:
        """Return the rows in use, ascending."""
        return np.flatnonzero(self[self._owner] != FREE)

    def wasteful(self) -> bool:
        """Return whether a quarter of the rows is free, so that renumbering pays."""
        return len(self._free) > 64 and len(self._free) * 4 > self.rows

    def keep(self, rows: Rows) -> None:
        """Renumber: row `rows[i]` becomes row `i`, all others are dropped."""
        self._columns = {name: column[rows] for name, column in self._columns.items()}
        self.rows = len(rows)
        self._free = []
        self.text.keep(rows)

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return all columns by name."""
        return {name: self[name] for name in self._columns}

    def load(self, columns: Mapping[str, NDArray[Any]], text: TextTable) -> None:
        """Replace the whole table."""
        self._columns = {
            name: np.array(columns[name], dtype) if name in columns else np.full(_length(columns), default, dtype)
            for name, (default, dtype) in self._defaults.items()
        }
        self.rows = _length(columns)
        self._free = np.flatnonzero(self[self._owner] == FREE)[::-1].tolist()
        self.text = text


def _length(columns: Mapping[str, NDArray[Any]]) -> int:
    return len(next(iter(columns.values())))


def member_table() -> Table:
    """Return an empty table of members.

    Columns: `group` (its row), `seen_ms` (last event that kept it alive), `timeout_ms` (session timeout), `fingerprint`
    (of the heartbeat that only keeps it alive, 0 for none).
    """
    return Table(
        {"group": (FREE, np.int32), "seen_ms": (0, np.int64), "timeout_ms": (0, np.int32), "fingerprint": (0, np.int64)}
    )


def group_table() -> Table:
    """Return an empty table of groups.

    Columns: `state` and `kind` (numbers of the enums), `seen_ms` (the group's effective time), `partition` (where it
    was seen first), `strays` (records seen elsewhere), `elsewhere` (whether there were any), `id_hash` (of its id, by
    which Kafka's producers choose its partition), `renewal_pending`, `renewed_ms` (the end of the newest outage that
    renewed its sessions).
    """
    return Table(
        {
            "state": (FREE, np.int8),
            "kind": (0, np.int8),
            "seen_ms": (-1, np.int64),
            "partition": (-1, np.int32),
            "strays": (0, np.int64),
            "elsewhere": (0, np.int8),
            "id_hash": (0, np.int32),
            "renewal_pending": (0, np.int8),
            "renewed_ms": (-1, np.int64),
        }
    )
