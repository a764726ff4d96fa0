"""The rows of the output, made of the columns of `columns.Rows`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heartwheel.engine.sessions.columns import NOT_SEEN_MS, OF_TABLE, Rows
from heartwheel.engine.sessions.config import EVENTS, LATE, TIMEOUT, SessionsConfig
from heartwheel.engine.sessions.table import Ints, KeyTable

_TIME: Final = pa.timestamp("us", "UTC")
_SORTED_BY: Final = 3
"""How many columns beside those of the output a batch has, by which rows are sorted."""


class OutputRows:
    """Collects the rows of one batch of a shard.

    Args:
        config: the query's.
        table: the shard's keys.
    """

    def __init__(self, config: SessionsConfig, table: KeyTable) -> None:
        self._config = config
        self._table = table
        self._wanted = np.array([name in config.emit for name in EVENTS])
        self._batches: list[pa.RecordBatch] = []

    def add(self, rows: Rows, distinct: pa.RecordBatch | None = None) -> None:
        """Add rows, as far as the configuration wants them.

        Args:
            rows: of keys that the table has.
            distinct: the distinct rows that they name, if they name some.
        """
        rows = rows.select(self._wanted[rows.event])
        if len(rows.key):
            self._batches.append(self._shaped(rows, distinct))

    def taken(self) -> pa.RecordBatch | None:
        """Return what was added since the last call, in the order of time; of one time, by event and key."""
        if not self._batches:
            return None
        rows = pa.concat_batches(self._batches)
        self._batches = []
        hashes, at_ms, event = (column.to_numpy() for column in rows.columns[-_SORTED_BY:])
        order = np.lexsort((hashes, event, at_ms))
        return rows.select(list(range(rows.num_columns - _SORTED_BY))).take(pa.array(order))

    def _shaped(self, rows: Rows, distinct: pa.RecordBatch | None) -> pa.RecordBatch:
        at, keys = pa.array(rows.key), self._table.keys
        columns = [] if keys is None else [column.take(at) for column in keys.columns]
        hashes = self._table["key"][rows.key]
        seen = rows.last_ms != NOT_SEEN_MS
        reasons = pa.array([None, TIMEOUT, LATE], pa.string())
        if distinct is not None and "reason" in distinct.schema.names:
            reasons = pa.concat_arrays([reasons, distinct.column("reason").cast(pa.string())])
        columns += [
            pa.array(EVENTS, pa.string()).take(pa.array(rows.event)),
            _times(rows.at_ms),
            _times(rows.first_ms),
            _times(rows.last_ms, seen),
            _times(rows.deadline_ms),
            pa.array((rows.at_ms - rows.last_ms) / 1000.0, mask=~seen),
            pa.array(rows.times),
            reasons.take(pa.array(rows.reason)),
            *self._carry_of(rows, distinct),
            _ids(hashes, rows),
            *(pa.array(column) for column in (hashes, rows.at_ms, rows.event)),
        ]
        return pa.RecordBatch.from_arrays(columns, names=[f"o{place}" for place in range(len(columns))])

    def _carry_of(self, rows: Rows, distinct: pa.RecordBatch | None) -> list[pa.Array]:
        carry = self._table.carry
        if carry is None:
            return []
        source, pool = rows.key, carry
        if distinct is not None:
            source = np.where(rows.carry == OF_TABLE, rows.key, len(carry) + rows.carry)
            pool = pa.concat_batches([carry, carried(self._config, distinct).cast(carry.schema)])
        return [column.take(pa.array(source)) for column in pool.columns]


def carried(config: SessionsConfig, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the carried columns of distinct rows."""
    return rows.select([f"c{number}" for number in range(config.carry)])


def _times(times_ms: Ints, known: Any = None) -> pa.Array:
    if known is None:
        return pa.array(times_ms * 1000, pa.int64()).cast(_TIME)
    return pa.array(np.where(known, times_ms, 0) * 1000, pa.int64(), mask=~known).cast(_TIME)


def _ids(hashes: Ints, rows: Rows) -> pa.Array:
    """Return an id for each row: the hash of its key, the number of the session, what happened, and when."""
    parts = (
        pa.array(hashes.view(np.uint64)),
        pa.array(rows.times),
        pa.array(EVENTS, pa.string()).take(pa.array(rows.event)),
    )
    return pc.binary_join_element_wise(*(part.cast(pa.string()) for part in (*parts, pa.array(rows.at_ms))), "-")
