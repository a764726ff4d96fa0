"""Text columns: the ids and details that a batch seldom needs, kept encoded until somebody asks.

A batch of heartbeats changes deadlines and nothing else, so a shard's ids, by far its largest part, go from one batch's
state to the next as the bytes they came in (`test_shard_codec.py::test_untouched_text_is_not_encoded_again`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SCHEMA: Final = pa.schema([("id", pa.large_string()), ("detail", pa.large_binary())])

_COMPRESSED_FROM_BYTES: Final = 64 * 1024
"""Smaller batches are written as they are: zstd takes a tenth of a millisecond for a column, however short it is."""

_THREADS_FROM_BYTES: Final = 1 << 20
"""Above this size Arrow may use its threads; below, handing the work to them costs ten times the work itself."""


class TextTable:
    """Keep an id and an encoded detail for each row of a table.

    Rows that were written since the table was decoded lie in a dictionary over the decoded columns, and are merged into
    them when the table is encoded.
    """

    def __init__(self, encoded: bytes | None = None) -> None:
        self._encoded = encoded
        self._columns: pa.RecordBatch | None = None
        self._written: dict[int, tuple[str, bytes]] = {}

    def ids(self, rows: NDArray[np.intp] | Sequence[int]) -> list[str]:
        """Read the ids of some rows."""
        return [row[0] for row in self._read(rows, detail=False)]

    def read(self, rows: NDArray[np.intp] | Sequence[int]) -> list[tuple[str, bytes]]:
        """Read (id, detail) of some rows."""
        return self._read(rows, detail=True)

    def write(self, row: int, row_id: str, detail: bytes) -> None:
        """Set the id and the detail of one row."""
        self._written[row] = (row_id, detail)

    def _decoded(self) -> pa.RecordBatch:
        if self._columns is None:
            if self._encoded is None:
                self._columns = pa.RecordBatch.from_pylist([], schema=_SCHEMA)
            else:
                self._columns = read_batch(self._encoded)
        return self._columns

    def _read(self, rows: NDArray[np.intp] | Sequence[int], *, detail: bool) -> list[tuple[str, bytes]]:
        columns = self._decoded()
        wanted = np.asarray(rows, np.int64)
        # A row that exists only in the dictionary is read as null here and filled in below.
        index = pa.array(wanted, mask=wanted >= columns.num_rows)
        ids = columns.column(0).take(index).to_pylist()
        details = columns.column(1).take(index).to_pylist() if detail else [b""] * len(ids)
        if not self._written:
            return list(zip(ids, details, strict=True))
        written = self._written.get
        return [
            written(row) or (row_id, row_detail)
            for row, row_id, row_detail in zip(wanted.tolist(), ids, details, strict=True)
        ]

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Renumber the table: row `rows[i]` becomes row `i`, all others are dropped."""
        merged = self._merged(int(rows.max()) + 1 if len(rows) else 0)
        self._columns = merged.take(pa.array(rows.astype(np.int64)))
        self._encoded = None
        self._written = {}

    def encode(self, rows: int) -> bytes:
        """Encode the first `rows` rows; unchanged tables are returned as the bytes they were decoded from."""
        if self._written or self._encoded is None:
            self._columns = self._merged(rows)
            self._encoded = write_batch(self._columns)
            self._written = {}
        return self._encoded

    def _merged(self, rows: int) -> pa.RecordBatch:
        columns = self._decoded()
        if not self._written and columns.num_rows == rows:
            return columns
        index = np.arange(rows, dtype=np.int64)
        if self._written:
            fresh = pa.RecordBatch.from_arrays(
                [
                    pa.array([text[0] for text in self._written.values()], pa.large_string()),
                    pa.array([text[1] for text in self._written.values()], pa.large_binary()),
                ],
                schema=_SCHEMA,
            )
            at = np.fromiter(self._written, np.int64, len(self._written))
            index[at] = columns.num_rows + np.arange(len(at))
            columns = pa.concat_batches([columns, fresh])
        return columns.take(pa.array(index))


def write_batch(batch: pa.RecordBatch) -> bytes:
    """Write one record batch as an Arrow IPC stream, compressed with zstd if it is large."""
    sink = pa.BufferOutputStream()
    compression = "zstd" if batch.nbytes > _COMPRESSED_FROM_BYTES else None
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=batch.nbytes > _THREADS_FROM_BYTES)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow is untyped


def read_batch(data: bytes) -> pa.RecordBatch:
    """Read what `write_batch` wrote.

    Raises:
        pyarrow.ArrowInvalid: the bytes are not such a stream.
    """
    options = pa.ipc.IpcReadOptions(use_threads=len(data) > _THREADS_FROM_BYTES)
    with pa.ipc.open_stream(data, options=options) as reader:
        return reader.read_next_batch()
