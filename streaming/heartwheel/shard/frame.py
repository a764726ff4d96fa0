"""The frame of a state blob: magic, version, checksum, named sections; as ASCII text.

The blob is a STRING column of Spark's state, in base64: a BINARY column would cross to Python as a latin-1 pickled
string at twice the cost. What is inside is versioned here and never by Spark, whose state schema stays the same for
ever.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Mapping
from typing import Final

from heartwheel.errors import HeartwheelError

MAGIC: Final = b"HWST"
_HEAD: Final = struct.Struct("<4sHHI")
_SECTION: Final = struct.Struct("<16sQ")


class StateBlobError(HeartwheelError):
    """Tell that a state blob cannot be read; the subclasses name why."""


class CorruptBlobError(StateBlobError):
    """The blob is not one of ours, was cut short, or was changed."""


class UnknownBlobVersionError(StateBlobError):
    """The blob was written by a newer release."""


class OldBlobVersionError(StateBlobError):
    """The blob was written by an older release, whose state cannot be carried on."""


def encode_frame(version: int, sections: Mapping[str, bytes]) -> str:
    """Frame named sections as text.

    Args:
        version: the version of what is in the sections.
        sections: name (at most 16 ASCII characters) to bytes.
    """
    table = b"".join(_SECTION.pack(name.encode("ascii"), len(data)) for name, data in sections.items())
    body = b"".join((table, *sections.values()))
    frame = _HEAD.pack(MAGIC, version, len(sections), _checksum(version, len(sections), body)) + body
    return binascii.b2a_base64(frame, newline=False).decode("ascii")


def _checksum(version: int, sections: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(struct.pack("<HH", version, sections)))


def decode_frame(text: str, *, newest: int) -> tuple[int, dict[str, bytes]]:
    """Read the version and the sections of a frame.

    Args:
        text: what `encode_frame` returned.
        newest: the newest version that the caller understands.

    Raises:
        CorruptBlobError: the text is not a whole, unchanged frame.
        UnknownBlobVersionError: the version is above `newest`.
    """
    try:
        frame = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptBlobError(f"the state blob is not base64 ({error})") from None
    if len(frame) < _HEAD.size or frame[:4] != MAGIC:
        raise CorruptBlobError(f"the state blob starts with {frame[:4]!r}, not {MAGIC!r}: it is not heartwheel's")
    _, version, count, checksum = _HEAD.unpack_from(frame)
    if version > newest:
        raise UnknownBlobVersionError(
            f"the state blob has version {version}, this release reads up to {newest}: run the release that wrote it"
        )
    body = memoryview(frame)[_HEAD.size :]
    if _checksum(version, count, body) != checksum:
        raise CorruptBlobError("the state blob's checksum does not match: it was cut short or changed")
    sections: dict[str, bytes] = {}
    at = count * _SECTION.size
    for i in range(count):
        name, size = _SECTION.unpack_from(body, i * _SECTION.size)
        sections[name.rstrip(b"\0").decode("ascii")] = bytes(body[at : at + size])
        at += size
    return version, sections
