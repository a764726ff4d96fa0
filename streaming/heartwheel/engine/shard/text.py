"""Text columns: the ids and details that a batch seldom needs, kept encoded until they are needed.

A batch of heartbeats changes only deadlines. So a shard's ids, by far its largest part, go from one batch's state to
the next as the text that was read (`test_shard_codec.py::test_untouched_text_is_not_encoded_again`), or stay in block
files. They are kept in blocks of `BLOCK_ROWS`, so that reading ten ids decodes at most ten blocks, and writing one
encodes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from heartwheel.engine.shard.block_files import BlockFiles
from heartwheel.engine.shard.blocks import BlockList

BLOCK_ROWS: Final = 512

_DECODERS: Final[dict[type, msgspec.msgpack.Decoder[Any]]] = {
    str: msgspec.msgpack.Decoder(list[str]),
    bytes: msgspec.msgpack.Decoder(list[bytes]),
}
_encode = msgspec.msgpack.Encoder().encode

Rows = NDArray[np.intp] | Sequence[int]
_Value = TypeVar("_Value", str, bytes)


class _Column(Generic[_Value]):
    """One column in blocks: each as it was read until it is needed, and a list of its values from then on.

    Args:
        nothing: the value of rows that were never written.
        encoded: of a `BlockList`.
        files: where blocks of it may lie.
    """

    def __init__(self, nothing: _Value, encoded: str, files: BlockFiles | None) -> None:
        self._nothing: _Value = nothing
        self._decode = _DECODERS[type(nothing)].decode
        self._list = BlockList(encoded, files)
        self._blocks: list[list[_Value] | None] = [None] * len(self._list)
        self._dirty: set[int] = set()

    def _block(self, number: int) -> list[_Value]:
        block = self._blocks[number]
        if block is None:
            block = self._blocks[number] = self._decode(self._list.read(number))
        return block

    def read(self, rows: Iterable[int]) -> list[_Value]:
        """Return the values of some rows; of one that was never written, the empty value."""
        blocks, found = self._blocks, []
        for row in rows:
            number, place = divmod(row, BLOCK_ROWS)
            block = (blocks[number] or self._block(number)) if number < len(blocks) else ()
            found.append(block[place] if place < len(block) else self._nothing)
        return found

    def write(self, row: int, value: _Value) -> None:
        """Set the value of one row."""
        number, place = divmod(row, BLOCK_ROWS)
        block = self._block_to_write(number, place)
        if place == len(block):
            block.append(value)
        elif block[place] == value:
            return
        else:
            block[place] = value
        self._dirty.add(number)

    def _block_to_write(self, number: int, places: int) -> list[_Value]:
        """Return a block with at least so many values."""
        while number >= len(self._blocks):
            self._dirty.add(len(self._blocks))
            self._blocks.append([])
        block = self._block(number)
        if places > len(block):
            block.extend([self._nothing] * (places - len(block)))
        return block

    def write_many(self, rows: NDArray[np.intp], values: list[_Value]) -> None:
        """Set the values of some rows; adjacent rows of one block are set together."""
        breaks: NDArray[np.intp] = np.flatnonzero((np.diff(rows) != 1) | (rows[1:] % BLOCK_ROWS == 0)) + 1
        for start, stop in pairwise([0, *breaks.tolist(), len(rows)]):
            number, place = divmod(int(rows[start]), BLOCK_ROWS)
            self._block_to_write(number, place)[place : place + stop - start] = values[start:stop]
            self._dirty.add(number)

    def blocks(self) -> BlockList:
        """Return the blocks, those encoded anew that were written."""
        for number in sorted(self._dirty):
            self._list.write(number, _encode(self._blocks[number]))
        self._dirty.clear()
        return self._list


class TextTable:
    """An id and an encoded detail for each row of a table.

    Args:
        ids: the ids, as `encode` returned them.
        details: the details likewise.
        files: where blocks of either may lie.
    """

    def __init__(self, ids: str = "", details: str = "", files: BlockFiles | None = None) -> None:
        self._files = files
        self._ids = _Column("", ids, files)
        self._details = _Column(b"", details, files)

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of some rows."""
        return self._ids.read(_listed(rows))

    def read(self, rows: Rows) -> list[tuple[str, bytes]]:
        """Return (id, detail) of some rows."""
        listed = _listed(rows)
        return list(zip(self._ids.read(listed), self._details.read(listed), strict=True))

    def write(self, row: int, row_id: str, detail: bytes) -> None:
        """Set the id and the detail of one row."""
        self._ids.write(row, row_id)
        self._details.write(row, detail)

    def write_many(self, rows: NDArray[np.intp], ids: list[str], details: list[bytes]) -> None:
        """Set the ids and details of some rows."""
        self._ids.write_many(rows, ids)
        self._details.write_many(rows, details)

    def keep(self, rows: NDArray[np.intp]) -> None:
        """Renumber the table: row `rows[i]` becomes row `i`, all others are dropped."""
        kept = self.read(rows)
        self._ids, self._details = _Column("", "", self._files), _Column(b"", "", self._files)
        for row, (row_id, detail) in enumerate(kept):
            self.write(row, row_id, detail)

    def encode(self) -> tuple[str, str]:
        """Return the encoded ids and details; unchanged ones are the text from which they were decoded."""
        ids, details = self.blocks()
        return ids.encode(), details.encode()

    def blocks(self) -> tuple[BlockList, BlockList]:
        """Return the blocks of ids and details."""
        return self._ids.blocks(), self._details.blocks()


def _listed(rows: Any) -> list[int]:
    return rows.tolist() if isinstance(rows, np.ndarray) else list(rows)
