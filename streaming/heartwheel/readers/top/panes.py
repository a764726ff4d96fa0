"""The tables of the screen: three of a kind, refilled from each frame without losing their position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

Row = tuple[str, list[Text]]
"""A row's key, which stays the same while the row is about the same thing, and its cells."""


class Pane(DataTable[Text]):
    """A table with a title.

    Args:
        title: shown on its border.
        empty: shown on the border while there are no rows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Why"),
        Binding("home", "scroll_top", "First", show=False),
        Binding("end", "scroll_bottom", "Last", show=False),
    ]

    def __init__(self, title: str, columns: Sequence[str], *, id: str, empty: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id, cursor_type="row", zebra_stripes=False)
        self._empty = empty
        self.border_title = title
        self.add_columns(*columns)

    def fill(self, rows: Iterable[Row]) -> None:
        """Show rows; cursor and scroll position stay with their rows."""
        wanted = dict(rows)
        self.border_subtitle = "" if wanted else self._empty
        if [key.value for key in self.rows] == list(wanted):
            self._update(wanted)
        else:
            self._replace(wanted)

    @property
    def chosen(self) -> str | None:
        """The key of the row under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def _update(self, wanted: dict[str, list[Text]]) -> None:
        columns = list(self.columns)
        for key, cells in wanted.items():
            for column, cell in zip(columns, cells, strict=True):
                if self.get_cell(key, column) != cell:
                    self.update_cell(key, column, cell, update_width=True)

    def _replace(self, wanted: dict[str, list[Text]]) -> None:
        chosen, at_top = self.chosen, self.cursor_row == 0
        scroll = self.scroll_offset
        self.clear()
        for key, cells in wanted.items():
            self.add_row(*cells, key=key)
        # At the top the user follows new rows; further down the user reads, and the row must not move away.
        if not at_top and chosen in wanted:
            row = self.get_row_index(chosen)
            self.move_cursor(row=row, animate=False, scroll=True)
        elif not at_top:
            self.scroll_to(scroll.x, scroll.y, animate=False)
