"""The expirations as a file: CSV for spreadsheets, JSON for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

import msgspec
from starlette.responses import Response

from heartwheel.dashboard.problems import JSON
from heartwheel.live.expiration import Expiration

COLUMNS: Final = Expiration.__struct_fields__
"""The columns of the CSV file, in their order."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Expiration]) -> str:
    """Write expirations as CSV (RFC 4180), with a heading; nothing stands in the cell of what is not known."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(getattr(row, name)) for name in COLUMNS] for row in rows)
    return file.getvalue()


def _cell(value: object) -> object:
    """Defuse text that a spreadsheet would run as a formula: ids come from strangers."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def csv_response(rows: Iterable[Expiration]) -> Response:
    """Answer with a CSV file."""
    # The mark at the start is how spreadsheets know that it is UTF-8.
    body = "\ufeff" + csv_text(rows)
    return Response(body, headers=_as_file("expirations.csv"), media_type="text/csv")


def json_response(rows: Iterable[Expiration]) -> Response:
    """Answer with a JSON file: a list of expirations."""
    return Response(msgspec.json.encode(list(rows)), headers=_as_file("expirations.json"), media_type=JSON)


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
