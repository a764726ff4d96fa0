"""Lists of blocks: each a text in the state row, or a reference to a block file that has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final

from heartwheel.engine.shard.block_files import MARK, BlockFiles, filed_bytes_of
from heartwheel.engine.shard.frame import pack_section, unpack_section
from heartwheel.engine.shard.seven_bits import to_bytes, to_text

_SIZE_CHARS: Final = 8
_BYTES: Final = 8 << 10
_ROW_PART: Final = 8
"""Once blocks are in files, the row holds changed ones up to this part of `BlockFiles.from_bytes`."""


class BlockList:
    """The blocks of one column, each packed (`frame.pack_section`).

    Args:
        encoded: the result of `encode`.
        files: the block files of the shard, where its blocks may lie.
    """

    def __init__(self, encoded: str = "", files: BlockFiles | None = None) -> None:
        self._files = files
        self._encoded: str | None = encoded
        count = int(encoded[:_SIZE_CHARS] or "0", 16)
        end = _SIZE_CHARS * (count + 1)
        sizes: list[int] = [int(encoded[at : at + _SIZE_CHARS], 16) for at in range(_SIZE_CHARS, end, _SIZE_CHARS)]
        self._texts = [encoded[start:stop] for start, stop in pairwise(accumulate(sizes, initial=end))]
        self._packed: dict[int, bytes] = {}
        self._measured: tuple[int, dict[str, int]] | None = None

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._texts)

    def read(self, number: int) -> bytes:
        """Return the content of one block.

        Raises:
            BlockFileError: it is in a file that cannot be read.
        """
        return unpack_section(self._packed_one(number))

    def read_all(self) -> list[bytes]:
        """Return the content of all blocks; raises as `read`."""
        filed = iter(self._read_filed([text for text in self._texts if text[:1] == MARK]))
        packed = [next(filed) if text[:1] == MARK else self._packed_one(at) for at, text in enumerate(self._texts)]
        return list(map(unpack_section, packed))

    def write(self, number: int, data: bytes, *, compressed: bool = True) -> None:
        """Set the content of one block, which may be the first behind the last."""
        if number == len(self._texts):
            self._texts.append("")
        self._packed[number] = pack_section(data, compressed=compressed)
        self._change(number, "")

    def cut(self, count: int) -> None:
        """Drop all blocks but the first so many."""
        if count < len(self._texts):
            del self._texts[count:]
            self._packed = {number: packed for number, packed in self._packed.items() if number < count}
            self._encoded = self._measured = None

    def encode(self) -> str:
        """Encode the list; blocks that were not written stay as they are."""
        if self._encoded is None:
            for number, packed in self._packed.items():
                self._texts[number] = to_text(packed)
            self._packed.clear()
            sizes = (len(self._texts), *map(len, self._texts))
            self._encoded = "".join((*(f"{size:0{_SIZE_CHARS}x}" for size in sizes), *self._texts))
        return self._encoded

    def size(self) -> int:
        """Return the size of all blocks, bytes."""
        return self.row_bytes() + sum(self.filed_bytes().values())

    def row_bytes(self) -> int:
        """Return the size of the blocks that are in the row."""
        return self._measure()[0]

    def filed_bytes(self) -> dict[str, int]:
        """Return the size of the blocks that are in each file, by its name."""
        return self._measure()[1]

    def _measure(self) -> tuple[int, dict[str, int]]:
        if self._measured is None:
            filed = [text for text in self._texts if text[:1] == MARK]
            in_row = sum(map(len, self._texts)) - sum(map(len, filed)) + sum(map(len, self._packed.values()))
            self._measured = in_row, filed_bytes_of(filed)
        return self._measured

    def in_row(self) -> Iterator[tuple[int, bytes]]:
        """Return number and packed content of the blocks that are in the row."""
        for number, text in enumerate(self._texts):
            if text[:1] != MARK:
                yield number, self._packed_one(number)

    def refer(self, number: int, reference: str) -> None:
        """Put a reference in the place of a block."""
        self._packed.pop(number, None)
        self._change(number, reference)

    def take_back(self) -> None:
        """Put the blocks that are in files back into the row; raises as `read`."""
        numbers = [number for number, text in enumerate(self._texts) if text[:1] == MARK]
        for number, packed in zip(numbers, self._read_filed([self._texts[at] for at in numbers]), strict=True):
            self._packed[number] = packed
            self._change(number, "")

    def _change(self, number: int, text: str) -> None:
        self._texts[number] = text
        self._encoded = self._measured = None

    def _packed_one(self, number: int) -> bytes:
        if number in self._packed:
            return self._packed[number]
        text = self._texts[number]
        return self._read_filed([text])[0] if text[:1] == MARK else to_bytes(text)

    def _read_filed(self, references: list[str]) -> list[bytes]:
        if not references:
            return []
        if self._files is None:
            raise ValueError("a block is in a file, and the state was opened without its block files")
        return self._files.read(references)


class ByteBlocks:
    """Bytes in blocks of `_BYTES`, of which those that do not change stay where they are.

    Args:
        encoded: of their `BlockList`.
        files: where blocks may lie.

    Attributes:
        data: the bytes.
    """

    def __init__(self, encoded: str = "", files: BlockFiles | None = None) -> None:
        self._list = BlockList(encoded, files)
        self.data = b"".join(self._list.read_all())

    def hold(self, data: bytes) -> BlockList:
        """Take other bytes in their place, and return their blocks."""
        for number, at in enumerate(range(0, len(data), _BYTES)):
            block = data[at : at + _BYTES]
            if block != self.data[at : at + _BYTES]:
                self._list.write(number, block, compressed=False)
        self._list.cut(-(-len(data) // _BYTES))
        self.data = data
        return self._list


def settle(lists: Sequence[BlockList], files: BlockFiles, *, in_files: bool) -> None:
    """Bring blocks into files, or back into the row.

    Changed blocks collect in the row until it pays to write a file of them. Once less than half of what the files hold
    is still referred to, all blocks go to one new file. So what is written is a few times what has changed, and every
    file but the first is larger than a part of `from_bytes`, which bounds their number.

    Args:
        lists: all of the shard.
        in_files: whether they are to be in files.

    Raises:
        BlockFileError: a file cannot be read.
        OSError: a file cannot be written.
    """
    _name_only_referred(lists, files)
    wasteful = 2 * files.filed_bytes < sum(files.files.values())
    if wasteful or not in_files:
        for each in lists:
            each.take_back()
    if in_files and sum(each.row_bytes() for each in lists) > files.from_bytes // _ROW_PART:
        _write(lists, files)
    _name_only_referred(lists, files)


def _name_only_referred(lists: Sequence[BlockList], files: BlockFiles) -> None:
    named = Counter[str]()
    for each in lists:
        named.update(each.filed_bytes())
    files.name_only(named)


def _write(lists: Sequence[BlockList], files: BlockFiles) -> None:
    blocks = [(each, number, packed) for each in lists for number, packed in each.in_row()]
    references = files.write([packed for _, _, packed in blocks])
    for (each, number, _), reference in zip(blocks, references, strict=True):
        each.refer(number, reference)
