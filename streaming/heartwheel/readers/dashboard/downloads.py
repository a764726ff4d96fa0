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

from heartwheel.readers.http_server.problems import JSON, RequestError
from heartwheel.readers.live.expiration import Expiration

_TIMES: Final = ("last_seen_ms", "deadline_ms", "detected_ms", "append_ms", "returned_ms")

COLUMNS: Final = (*Expiration.__struct_fields__, *(f"{name.removesuffix('_ms')}_time" for name in _TIMES))
"""The columns of the CSV file, in their order: all fields, and the times once more in readable form. A time ends with Z
if it is UTC. One without Z is from a log that names no zone; so no column is named after a zone."""

DOWNLOADS_MAX: Final = 4
"""Most downloads at once."""

DOWNLOAD_S: Final = 300
"""How long a download may take, seconds."""

RETRY_S: Final = 10
"""How long clients should wait that are refused because others download, seconds."""

ROWS_A_PIECE: Final = 200
"""How many expirations are written before the client has to have read them."""

_log = logging.getLogger(__name__)
_LAST_MS: Final = 253_402_300_799_999
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Expiration]) -> str:
    """Return expirations as CSV (RFC 4180), with a heading; the cell of an unknown value is empty."""
    return _written([COLUMNS]) + _csv(rows)


def _csv(rows: Iterable[Expiration], zone: str = "Z") -> str:
    names = Expiration.__struct_fields__
    return _written(
        [_cell(getattr(row, name)) for name in names] + [_readable(getattr(row, name), zone) for name in _TIMES]
        for row in rows
    )


def _readable(at_ms: int | None, zone: str) -> str:
    """Return a time as ISO 8601 with its zone, to the millisecond; empty if it is not known."""
    if at_ms is None or not 0 <= at_ms <= _LAST_MS:
        return ""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", zone)


def _written(lines: Iterable[Sequence[object]]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file).writerows(lines)
    return file.getvalue()


def _cell(value: object) -> object:
    """Defuse text that a spreadsheet would run as a formula: ids come from strangers. Sentences are joined."""
    if isinstance(value, tuple):
        value = " ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


class Downloads:
    """The downloads of one dashboard that are running."""

    def __init__(self) -> None:
        self.running = 0


class Download(Response):
    """A response that sends expirations as a file, a few at a time, as fast as the client reads.

    Nothing is collected before the download's turn has come; a request during `DOWNLOADS_MAX` others is asked to retry.

    Args:
        downloads: those that run.
        rows: collects the expirations to send.
        kind: the format.
    """

    def __init__(self, downloads: Downloads, rows: Callable[[], Sequence[Expiration]], kind: FileKind) -> None:
        headers = {"content-disposition": f'attachment; filename="{kind.name}"', "cache-control": "no-store"}
        super().__init__(headers=headers, media_type=kind.media)
        # The length is not known yet, and the answer to a HEAD may leave it out.
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


class FileKind(NamedTuple):
    """A kind of file: its name, its content type, and the function that writes it piece by piece."""

    name: str
    media: str
    pieces: Callable[[Sequence[Expiration]], Iterator[bytes]]


def _csv_pieces(rows: Sequence[Expiration], zone: str = "Z") -> Iterator[bytes]:
    # Spreadsheets recognise UTF-8 by the byte order mark at the start.
    yield f"\ufeff{csv_text(())}".encode()
    for at in range(0, len(rows), ROWS_A_PIECE):
        yield _csv(rows[at : at + ROWS_A_PIECE], zone).encode()


def _json_pieces(rows: Sequence[Expiration]) -> Iterator[bytes]:
    yield b"["
    for at in range(0, len(rows), ROWS_A_PIECE):
        yield (b"," if at else b"") + msgspec.json.encode(rows[at : at + ROWS_A_PIECE])[1:-1]
    yield b"]"


CSV: Final = FileKind("expirations.csv", "text/csv", _csv_pieces)
"""A CSV file."""

CSV_NO_ZONE: Final = FileKind("expirations.csv", "text/csv", partial(_csv_pieces, zone=""))
"""A CSV file of a log that names no zone: its times are those of the log, without a Z."""

JSON_FILE: Final = FileKind("expirations.json", JSON, _json_pieces)
"""A JSON file: a list of expirations."""
