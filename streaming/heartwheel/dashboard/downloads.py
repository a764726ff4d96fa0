"""The expirations as a file: CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from heartwheel.http_server.problems import JSON, RequestError
from heartwheel.live.expiration import Expiration

_TIMES: Final = ("last_seen_ms", "deadline_ms", "detected_ms", "append_ms", "returned_ms")

COLUMNS: Final = (*Expiration.__struct_fields__, *(f"{name.removesuffix('_ms')}_time" for name in _TIMES))
"""The columns of the CSV file, in their order: all fields, and the times once more as people read them.

A time ends with Z if it is UTC. One without Z is as the log has it, which names no zone; so no column is named after a
zone.
"""

DOWNLOADS_MAX: Final = 4
"""Most downloads at once."""

DOWNLOAD_S: Final = 300
"""How long one may take, seconds."""

RETRY_S: Final = 10
"""How long those should wait who come while others download, seconds."""

ROWS_A_PIECE: Final = 200
"""How many expirations are written before the reader is waited for."""

_log = logging.getLogger(__name__)
_LAST_MS: Final = 253_402_300_799_999
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Expiration]) -> str:
    """Write expirations as CSV (RFC 4180), with a heading; nothing stands in the cell of what is not known."""
    return _written([COLUMNS]) + _csv(rows)


def _csv(rows: Iterable[Expiration], zone: str = "Z") -> str:
    names = Expiration.__struct_fields__
    return _written(
        [_cell(getattr(row, name)) for name in names] + [_readable(getattr(row, name), zone) for name in _TIMES]
        for row in rows
    )


def _readable(at_ms: int | None, zone: str) -> str:
    """Write a time as ISO 8601 with its zone, to the millisecond; nothing if it is not known."""
    if at_ms is None or not 0 <= at_ms <= _LAST_MS:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", zone)


def _written(lines: Iterable[Sequence[object]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(lines)
    return file.getvalue()


def _cell(value: object) -> object:
    """Defuse text that a spreadsheet would run as a formula: ids come from strangers. Sentences are one text."""
    if isinstance(value, tuple):
        value = " ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class Downloads:
    """The downloads that run, of one dashboard."""

    def __init__(self) -> None:
        self.running = 0


class Download(Response):
    """A response that sends expirations as a file, a few at a time, as fast as it is read.

    Nothing is collected before its turn has come, and who asks while `DOWNLOADS_MAX` run is asked to come back.

    Args:
        downloads: those that run.
        rows: collects what is sent.
        kind: how it is written.
    """

    def __init__(self, downloads: Downloads, rows: Callable[[], Sequence[Expiration]], kind: Kind) -> None:
        headers = {"content-disposition": f'attachment; filename="{kind.name}"', "cache-control": "no-store"}
        super().__init__(headers=headers, media_type=kind.media)
        # The length is not known yet, and a HEAD need not tell it.
        del self.headers["content-length"]
        self._downloads, self._rows, self._kind = downloads, rows, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] == "HEAD":
            await super().__call__(scope, receive, send)
            return
        if self._downloads.running >= DOWNLOADS_MAX:
            words = f"{DOWNLOADS_MAX} downloads run already"
            busy = RequestError(503, words, "try again in a moment", retry_s=RETRY_S)
            await busy.response()(scope, receive, send)
            return
        self._downloads.running += 1
        try:
            rows = await run_in_threadpool(self._rows)
            answer = StreamingResponse(self._kind.pieces(rows), headers=dict(self.headers))
            async with asyncio.timeout(DOWNLOAD_S):
                await answer(scope, receive, send)
        except TimeoutError:
            _log.warning("a download was cut off: its reader took more than %d s", DOWNLOAD_S)
        finally:
            self._downloads.running -= 1


class Kind(NamedTuple):
    """A kind of file: its name, its content type, and what writes it piece by piece."""

    name: str
    media: str
    pieces: Callable[[Sequence[Expiration]], Iterator[bytes]]


def _csv_pieces(rows: Sequence[Expiration], zone: str = "Z") -> Iterator[bytes]:
    # The mark at the start is how spreadsheets know that it is UTF-8.
    yield f"\ufeff{csv_text(())}".encode()
    for at in range(0, len(rows), ROWS_A_PIECE):
        yield _csv(rows[at : at + ROWS_A_PIECE], zone).encode()


def _json_pieces(rows: Sequence[Expiration]) -> Iterator[bytes]:
    yield b"["
    for at in range(0, len(rows), ROWS_A_PIECE):
        yield (b"," if at else b"") + msgspec.json.encode(rows[at : at + ROWS_A_PIECE])[1:-1]
    yield b"]"


CSV: Final = Kind("expirations.csv", "text/csv", _csv_pieces)
"""A CSV file."""

CSV_NO_ZONE: Final = Kind("expirations.csv", "text/csv", partial(_csv_pieces, zone=""))
"""Likewise, of a log that names no zone: its times are as it has them, without a Z."""

JSON_FILE: Final = Kind("expirations.json", JSON, _json_pieces)
"""A JSON file: a list of expirations."""
