"""The frame of a state blob: magic, version, checksum, named sections; all of it ASCII text.

The blob is a STRING column of Spark's state: a BINARY column would cross to Python as a latin-1 pickled string at twice
the cost. Its contents are versioned here and never by Spark, whose state schema always stays the same. Each section is
a text of its own, so a section that is not needed is not decoded, and one that did not change is written as it was
read.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.shard.seven_bits import to_bytes, to_text

MAGIC: Final = "HWST"
_BASE64_MAGIC: Final = "SFdTV"
"""The first characters of blobs that were written as base64, before version 3."""

_HEAD_CHARS: Final = len(MAGIC) + 4 + 4 + 8
_NAME_CHARS: Final = 16
_ENTRY_CHARS: Final = _NAME_CHARS + 10

_RAW: Final = b"\0"
_ZSTD: Final = b"\1"
_COMPRESSED_FROM: Final = 1024
"""Shorter sections are not compressed: zstd has a fixed cost."""


class StateBlobError(HeartwheelError):
    """A state blob cannot be read; the subclasses say why."""


class CorruptBlobError(StateBlobError):
    """The blob is not heartwheel's, was cut short, or was changed."""


class UnknownBlobVersionError(StateBlobError):
    """The blob was written by a newer release."""


class OldBlobVersionError(StateBlobError):
    """The blob was written by an older release, whose state cannot be continued."""


def pack_section(data: bytes, *, compressed: bool = True) -> bytes:
    """Compress the bytes of a section.

    Args:
        compressed: whether to try it. For noise it only costs time.
    """
    if compressed and len(data) >= _COMPRESSED_FROM:
        packed = pa.compress(data, codec="zstd", asbytes=True)
        if len(packed) + 8 < len(data):
            return b"".join((_ZSTD, len(data).to_bytes(8, "little"), packed))
    return _RAW + data


def unpack_section(packed: bytes) -> bytes:
    """Decompress what `pack_section` returned.

    Raises:
        OSError: if the bytes cannot be decompressed.
    """
    if packed[:1] == _ZSTD:
        size = int.from_bytes(packed[1:9], "little")
        return pa.decompress(memoryview(packed)[9:], size, codec="zstd", asbytes=True)  # type: ignore[no-any-return]
    return packed[1:]


def encode_section(data: bytes, *, compressed: bool = True) -> str:
    """Encode the bytes of a section as text.

    Args:
        compressed: see `pack_section`.
    """
    return to_text(pack_section(data, compressed=compressed))


def decode_section(text: str) -> bytes:
    """Decode what `encode_section` returned.

    Raises:
        OSError: if the bytes cannot be decompressed.
    """
    return unpack_section(to_bytes(text))


def encode_frame(version: int, sections: Mapping[str, str]) -> str:
    """Frame named sections.

    Args:
        version: the version of the sections' contents.
        sections: name (at most 16 ASCII characters) to ASCII text.
    """
    table = "".join(f"{name:<{_NAME_CHARS}}{len(text):010x}" for name, text in sections.items())
    body = "".join((table, *sections.values()))
    return f"{MAGIC}{version:04x}{len(sections):04x}{_checksum(version, len(sections), body):08x}{body}"


def _checksum(version: int, sections: int, body: str) -> int:
    return zlib.crc32(body.encode("ascii"), zlib.crc32(b"%d %d" % (version, sections)))


def kept_section(name: str, data: bytes, encoded: Mapping[str, tuple[bytes, str]], *, compressed: bool = True) -> str:
    """Encode the bytes of a section, or return the text that was read if they are the same.

    Args:
        encoded: the sections that were read, each as bytes and as text.
        compressed: see `encode_section`.
    """
    before = encoded.get(name)
    if before is not None and before[0] == data:
        return before[1]
    return encode_section(data, compressed=compressed)


def decode_frame(text: str, *, newest: int, oldest: int = 0) -> tuple[int, dict[str, str]]:
    """Return the version and the sections of a frame.

    Args:
        text: the result of `encode_frame`.
        newest: the newest version that the caller understands.
        oldest: likewise the oldest.

    Raises:
        CorruptBlobError: if the text is not a whole, unchanged frame.
        OldBlobVersionError: if the version is below `oldest`, or of before there were such frames.
        UnknownBlobVersionError: if the version is above `newest`.
    """
    if text.startswith(_BASE64_MAGIC):
        raise OldBlobVersionError("the state blob is base64, as those before version 3 were; this release reads none")
    head = text[:_HEAD_CHARS]
    if len(head) < _HEAD_CHARS or not head.startswith(MAGIC):
        raise CorruptBlobError(f"the state blob starts with {head[:4]!r}, not {MAGIC!r}: it is not heartwheel's")
    try:
        version, count, checksum = (int(part, 16) for part in (head[4:8], head[8:12], head[12:]))
    except ValueError:
        raise CorruptBlobError(f"the state blob's head {head!r} is not hexadecimal: it was changed") from None
    if version > newest:
        raise UnknownBlobVersionError(
            f"the state blob has version {version}, this release reads up to {newest}: run the release that wrote it"
        )
    body = text[_HEAD_CHARS:]
    if not body.isascii() or _checksum(version, count, body) != checksum:
        raise CorruptBlobError("the state blob's checksum does not match: it was cut short or changed")
    if version < oldest:
        raise OldBlobVersionError(f"the state blob has version {version}, this release reads version {oldest}")
    sections: dict[str, str] = {}
    at = count * _ENTRY_CHARS
    for entry in range(0, at, _ENTRY_CHARS):
        name, size = body[entry : entry + _NAME_CHARS], int(body[entry + _NAME_CHARS : entry + _ENTRY_CHARS], 16)
        sections[name.rstrip()] = body[at : at + size]
        at += size
    return version, sections
