"""Unpack what a record batch holds compressed, up to a limit: a few kilobytes can hold gigabytes.

A broker's `max.message.bytes` counts compressed bytes, and 32 KiB of zstd can hold a record of a gigabyte. So the limit
is on what comes out, and is looked at while it comes out; what a frame says of its own size is believed only where it
makes the refusal quicker.
"""

from __future__ import annotations

import gzip
import io
from typing import Any, Final

import lz4.frame  # type: ignore[import-untyped]  # has no types
import snappy  # type: ignore[import-untyped]  # likewise
import zstandard
from kafka.errors import CorruptRecordError, UnsupportedCodecError

GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
"""The codecs as the attributes of a record batch number them."""

_CHUNK_BYTES: Final = 1 << 20
_ZSTD_WINDOW_BYTES_MAX: Final = 128 << 20
"""The largest window that zstd reads unless asked otherwise, here and in Java; its memory is filled no faster than
output comes out."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER_BYTES: Final = 16
_VARINT_BYTES_MAX: Final = 5


class UnpackedTooLargeError(Exception):
    """Something unpacks to more than the limit."""


def unpack(codec: int, data: bytes, limit: int) -> bytearray:
    """Unpack compressed records.

    Args:
        codec: as the attributes of a record batch number it.
        limit: most that may come out, bytes.

    Raises:
        UnpackedTooLargeError: it unpacks to more; at most a chunk beyond the limit was in memory.
        CorruptRecordError: it is no whole stream of that codec.
        UnsupportedCodecError: there is no such codec.
    """
    try:
        if codec == GZIP:
            return _drained(gzip.GzipFile(fileobj=io.BytesIO(data)), limit)
        if codec == SNAPPY:
            return _unsnapped(data, limit)
        if codec == LZ4:
            return _unlz4ed(data, limit)
        if codec == ZSTD:
            return _unzstded(data, limit)
    except (EOFError, OSError, RuntimeError, ValueError, zstandard.ZstdError, snappy.UncompressError) as error:
        raise CorruptRecordError(f"compressed records cannot be unpacked: {error}") from error
    raise UnsupportedCodecError(f"no codec has the number {codec}")


def _drained(stream: Any, limit: int) -> bytearray:
    found = bytearray()
    while chunk := stream.read(_CHUNK_BYTES):
        found += chunk
        if len(found) > limit:
            raise UnpackedTooLargeError
    return found


def _unzstded(data: bytes, limit: int) -> bytearray:
    # -1 is a size that is not given, as by every producer that compresses a stream.
    if zstandard.frame_content_size(data) > limit:
        raise UnpackedTooLargeError
    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
    with unpacker.stream_reader(data, read_across_frames=True) as stream:
        return _drained(stream, limit)


def _unlz4ed(data: bytes, limit: int) -> bytearray:
    unpacker = lz4.frame.LZ4FrameDecompressor()
    found = bytearray()
    rest: bytes | None = data
    while not unpacker.eof:
        chunk = unpacker.decompress(rest or b"", max_length=_CHUNK_BYTES)
        if not chunk and unpacker.needs_input:
            raise EOFError("the frame is cut off")
        found += chunk
        if len(found) > limit:
            raise UnpackedTooLargeError
        rest = None  # the decompressor keeps what it has not read yet
    return found


def _unsnapped(data: bytes, limit: int) -> bytearray:
    """Unpack one block, or the blocks that Java's library frames; each begins with the size of what it holds."""
    if not data.startswith(_XERIAL_MAGIC) or len(data) < _XERIAL_HEADER_BYTES:
        return bytearray(_block(data, limit))
    found = bytearray()
    at = _XERIAL_HEADER_BYTES
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size < 0 or at + size > len(data):
            raise EOFError("a block is cut off")
        found += _block(data[at : at + size], limit - len(found))
        at += size
    return found


def _block(block: bytes, limit: int) -> bytes:
    size = 0
    for at, byte in enumerate(block[:_VARINT_BYTES_MAX]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            break
    # The size is not only given: the library makes room for it before it reads on, and fails if it is not true.
    if size > limit:
        raise UnpackedTooLargeError
    return bytes(snappy.uncompress(block))
