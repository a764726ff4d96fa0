"""An opened log: a file or a pipe, compressed or not, in UTF-8 or UTF-16."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from heartwheel.base.errors import HeartwheelError

STDIN: Final = "-"
"""The name of the standard input among the files."""


BLOCK_BYTES: Final = 4 << 20


class OpenedLog(Protocol):
    """The bytes of a log, decompressed and in UTF-8."""

    def read(self, size: int, /) -> bytes:
        """Read at most so many bytes; none at the end."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


def open_log(name: str, stdin: BinaryIO | None = None) -> OpenedLog:
    """Open a log: plain, gzipped, or in UTF-16 as PowerShell redirects it.

    Args:
        name: of the file, or `-` if there is a stream for it.
        stdin: the stream for `-`; `None` where the caller reads files alone.

    Raises:
        HeartwheelError: it cannot be read.
    """
    if stdin is not None and name == STDIN:
        return decoded(stdin, name)
    try:
        raw = Path(name).open("rb")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        hint = "name a broker's log" if stdin is None else "name a broker's log, or - for stdin"
        raise HeartwheelError(f"{name} cannot be read: {error.strerror}", hint=hint) from error
    return decoded(raw, name)


def decoded(raw: BinaryIO, name: str) -> OpenedLog:
    """Return the stream, decompressed or recoded where its first bytes show gzip or UTF-16."""
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(_Raw(raw), BLOCK_BYTES)
    try:
        start = buffered.peek(4)[:4]
    except OSError as error:
        raise HeartwheelError(f"{name} cannot be read: {error.strerror}", hint="name a file, no folder") from error
    if start.startswith(b"\x1f\x8b"):
        return _Gzip(buffered, name)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _Recoded(buffered)
    return buffered


class _Raw(io.RawIOBase):
    """An adapter that makes a plain stream fit for buffering."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)


class _Gzip:
    """A gzip file; errors name the file that is damaged."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        self._raw, self._name = raw, name
        self._stream = gzip.GzipFile(fileobj=raw)

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except (EOFError, OSError, zlib.error) as error:
            hint = "decompress it with gzip -dc, which says where it is damaged"
            raise HeartwheelError(f"{self._name} is no whole gzip file: {error}", hint=hint) from error

    def close(self) -> None:
        self._stream.close()
        self._raw.close()


class _Recoded:
    """UTF-16, read as UTF-8."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        text = self._decoder.decode(data, not data)
        if data and not text:
            return self.read(size)
        return text.encode("utf-8", "replace")

    def close(self) -> None:
        self._stream.close()
