"""One frame for pipes and files: plain tables, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from heartwheel.readers.top.cells import (
    EXPIRED_COLUMNS,
    GROUP_COLUMNS,
    RISK_COLUMNS,
    expired_cells,
    group_cells,
    head,
    risk_cells,
)
from heartwheel.readers.top.frame import Frame

ROWS_MAX: Final = 20
"""Most rows of each table."""


def print_snapshot(console: Console, frame: Frame) -> None:
    """Print a frame: the present state, and the first rows of each table."""
    now_ms = frame.now.at_ms
    parts: list[RenderableType] = [*head(frame)]
    expired = (expired_cells(row, cut=False) for row in frame.expirations[:ROWS_MAX])
    decides = frame.now.health.as_of_ms is None
    risk = (risk_cells(row, now_ms=now_ms, cut=False, decides=decides) for row in frame.at_risk[:ROWS_MAX])
    groups = (group_cells(group, now_ms=now_ms, cut=False, decides=decides) for group in frame.groups[:ROWS_MAX])
    parts += _table(f"expired ({frame.matched:,})", EXPIRED_COLUMNS, expired)
    parts += _table("at risk", RISK_COLUMNS, risk)
    parts += _table("groups", GROUP_COLUMNS, groups)
    console.print(Group(*parts))


def _table(title: str, columns: Sequence[str], rows: Iterable[list[Text]]) -> list[RenderableType]:
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for cells in rows:
        table.add_row(*cells)
    body = table if table.row_count else Text("nothing", "dim")
    return [Text(""), Text(title, "bold underline"), body]


def document(frame: Frame) -> Any:
    """Return a frame as JSON: the documents of the dashboard's API, `now`, `expirations`, `at_risk` and `groups`."""
    return {
        "now": msgspec.to_builtins(frame.now),
        "expirations": msgspec.to_builtins(frame.expirations[:ROWS_MAX]),
        "at_risk": msgspec.to_builtins(frame.at_risk[:ROWS_MAX]),
        "groups": msgspec.to_builtins(frame.groups[:ROWS_MAX]),
    }
