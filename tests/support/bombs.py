"""Record batches that are small in the log and huge once unpacked; making one takes no more memory than sending it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import lz4.frame  # type: ignore[import-untyped]  # has no types
import snappy  # type: ignore[import-untyped]  # likewise
import zstandard

from heartwheel.kafka.unpack import GZIP, LZ4, SNAPPY, ZSTD
from support.produce import EncodedBatch, ProduceConnection
from support.record_batch import frame_batch, varint

MIB: Final = 1 << 20
_KEY: Final = b"bomb"
CODECS: Final = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}


def bomb(codec: str, value_bytes: int, *, records_more: int = 0) -> bytes:
    """Encode a batch of a record whose value is so many zeros, and of more records of a few bytes behind it."""
    packed = b"".join(_packed(codec, _pieces(value_bytes, records_more)))
    return frame_batch(packed, 1 + records_more, 0, CODECS[codec])


def blow_up(bootstrap: str, topic: str, partition: int, data: bytes) -> None:
    """Append a batch as it is."""
    connection = ProduceConnection(bootstrap, topic.encode())
    try:
        connection.send(EncodedBatch(partition, [0], data))
        connection.settle()
    finally:
        connection.close()


def _pieces(value_bytes: int, records_more: int) -> Iterator[bytes]:
    for delta in range(1 + records_more):
        size = 1 if delta else value_bytes
        # Attributes and timestamp delta are zero; so is the number of headers, at the end.
        head = b"\0\0" + varint(delta) + varint(len(_KEY)) + _KEY + varint(size)
        yield varint(len(head) + size + 1) + head
        for at in range(0, size, MIB):
            yield bytes(min(MIB, size - at))
        yield b"\0"


def _packed(codec: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    if codec == "snappy":
        yield b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2
        for piece in pieces:
            block: bytes = snappy.compress(piece)
            yield len(block).to_bytes(4, "big") + block
        return
    compress, finish = _streams[codec]()
    for piece in pieces:
        yield compress(piece)
    yield finish()


def _gzip() -> tuple[Any, Any]:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress, packer.flush


def _zstd() -> tuple[Any, Any]:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    return packer.compress, packer.flush


def _lz4() -> tuple[Any, Any]:
    packer = lz4.frame.LZ4FrameCompressor(block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
    head: list[bytes] = [packer.begin()]
    return lambda piece: (head.pop() if head else b"") + packer.compress(piece), packer.flush


_streams: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {"gzip": _gzip, "zstd": _zstd, "lz4": _lz4}
