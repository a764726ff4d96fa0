"""The operations of a shard in columns: those that wait, and the ids of those that ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from heartwheel.engine.operations.condition import Watched
from heartwheel.engine.operations.index import HashIndex, Ints, hash_of
from heartwheel.engine.shard.tables import FREE, Table
from timing_wheel import TimingWheel

WAITS: Final = 0
ENDED: Final = 1

_decode = msgspec.msgpack.Decoder(Watched).decode
_encode = msgspec.msgpack.Encoder().encode


def operation_table() -> Table:
    """Return an empty table of operations.

    Columns: `state` (`WAITS` or `ENDED`), `id_hash`. The detail of a waiting operation is its `Watched`. The wheel has
    its expiry, and later the time to forget it, under its row.
    """
    return Table({"state": (FREE, np.int8), "id_hash": (0, np.int64)})


class Operations:
    """Operations by id and by the keys that they watch.

    Args:
        wheel: its handles are rows of the table.
        key_hashes: int64 (watches,), the hash of each watched key.
        key_rows: (watches,), the row that watches it.
    """

    def __init__(self, table: Table, wheel: TimingWheel, key_hashes: Ints, key_rows: Ints) -> None:
        self.table = table
        self.wheel = wheel
        used = table.used()
        self._by_id = HashIndex(table["id_hash"][used], used)
        self._by_key = HashIndex(key_hashes, key_rows)

    def __len__(self) -> int:
        """Return the number of operations, including those that have ended."""
        return len(self.table)

    @property
    def waiting(self) -> int:
        """The number of operations that wait."""
        return int(np.count_nonzero(self.table["state"] == WAITS))

    def find(self, operation_id: str) -> int | None:
        """Return the row of an operation that waits or has ended; `None` if it is not known."""
        state, text = self.table["state"], self.table.text
        for row in self._by_id.rows(hash_of(operation_id)):
            if state[row] != FREE and text.ids([row])[0] == operation_id:
                return row
        return None

    def add(self, operation: Watched) -> int:
        """Add a waiting operation, and return its row."""
        row = self.table.allocate()
        id_hash = hash_of(operation.operation_id)
        self.table["state"][row] = WAITS
        self.table["id_hash"][row] = id_hash
        self._by_id.add(id_hash, row)
        for key in operation.keys:
            self._by_key.add(hash_of(key), row)
        self.write(row, operation)
        self.wheel.file_one(row, operation.deadline_ms)
        return row

    def waits(self, row: int) -> bool:
        """Return whether the operation in a row waits."""
        return bool(self.table["state"][row] == WAITS)

    def read(self, row: int) -> Watched:
        """Return a waiting operation."""
        return _decode(self.table.text.read([row])[0][1])

    def read_all(self, rows: list[int]) -> list[Watched]:
        """Return many waiting operations; much cheaper than reading each."""
        return [_decode(detail) for _, detail in self.table.text.read(rows)]

    def write(self, row: int, operation: Watched) -> None:
        """Write a changed waiting operation."""
        self.table.text.write(row, operation.operation_id, _encode(operation))

    def watching(self, key: str) -> Iterator[tuple[int, Watched]]:
        """Yield the waiting operations that watch a key, with their rows."""
        for row in self._by_key.rows(hash_of(key)):
            if self.waits(row):
                operation = self.read(row)
                if key in operation.keys:
                    yield row, operation

    def remember(self, row: int, operation_id: str, until_ms: int) -> None:
        """Mark an operation as ended; only its id is kept, up to a time, epoch ms."""
        self.table["state"][row] = ENDED
        self.table.text.write(row, operation_id, b"")
        self.wheel.file_one(row, until_ms)

    def forget(self, row: int) -> None:
        """Release the row of an ended operation."""
        self.table.release(row)
        self.table.text.write(row, "", b"")

    def watches(self) -> tuple[Ints, Ints]:
        """Return (key hashes, rows) of the waiting operations; entries of ended ones are dropped."""
        hashes, rows = self._by_key.entries()
        waits = self.table["state"][rows] == WAITS
        return hashes[waits], rows[waits]
