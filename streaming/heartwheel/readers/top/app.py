"""The screen of `heartwheel top`: keys, panes and their content."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Footer, Input, Static

from heartwheel.base.wall_clock import time_of_day, wall_ms
from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.top.cells import (
    EXPIRED_COLUMNS,
    GROUP_COLUMNS,
    RISK_COLUMNS,
    expired_cells,
    group_cells,
    head,
    risk_cells,
)
from heartwheel.readers.top.detail import Detail
from heartwheel.readers.top.frame import Frame, narrowed
from heartwheel.readers.top.panes import Pane
from heartwheel.readers.top.watch import Frames

WIDE_CELLS: Final = 150
"""From this width on all panes are shown side by side; below it, one at a time."""

WIDE_LINES: Final = 30
"""From this height on all panes are shown."""

_PANES: Final = ("expired", "risk", "groups")


class Top(App[None]):
    """The terminal application: shows frames until the user quits.

    Args:
        frame_s: from one frame to the next, seconds.
        risk_s: from one update of the countdowns to the next, seconds.
    """

    TITLE = "heartwheel top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: auto; padding: 0 1; }
    #filter { display: none; height: 3; }
    #filter.open { display: block; }
    #body { height: 1fr; }
    #right { width: 2fr; }
    Pane { height: 1fr; border: round $surface-lighten-2; border-title-color: $text; }
    Pane:focus { border: round $accent; }
    #expired { width: 3fr; }
    .narrow Pane { display: none; }
    .narrow Pane.shown { display: block; }
    .narrow #right.hidden, .narrow #expired.hidden { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "pause", "Pause"),
        Binding("f,slash", "filter", "Filter", key_display="f"),
        Binding("tab", "turn(1)", "Next table", priority=True),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
        Binding("escape", "clear", show=False),
    ]

    def __init__(self, frames: Frames, *, frame_s: float = 1.0, risk_s: float = 0.25) -> None:
        super().__init__()
        self._frames = frames
        self._frame_s, self._risk_s = frame_s, risk_s
        self._text = ""
        self._paused_ms: int | None = None
        self._taken: Frame | None = None
        self._is_narrow = True
        self._active = _PANES[0]

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen."""
        yield Static(id="head")
        yield Input(placeholder="words in ids, client or host; Enter keeps, Escape clears", id="filter")
        with Horizontal(id="body"):
            yield Pane("expired", EXPIRED_COLUMNS, id="expired", empty="no member was expired in the time shown")
            with Vertical(id="right"):
                yield Pane("at risk", RISK_COLUMNS, id="risk", empty="no member is near its expiry")
                yield Pane("groups", GROUP_COLUMNS, id="groups", empty="no group has rebalanced lately")
        yield Footer()

    def on_mount(self) -> None:
        """Start the timers that draw."""
        self._pane("expired").focus()
        self._arrange()
        self.refresh_frame()
        self.set_interval(self._frame_s, self.refresh_frame)
        self.set_interval(self._risk_s, self.refresh_risk)

    def on_resize(self, event: events.Resize) -> None:
        """Show one pane or all, depending on the size."""
        self._is_narrow = event.size.width < WIDE_CELLS or event.size.height < WIDE_LINES
        self._arrange()

    def refresh_frame(self) -> None:
        """Show a new frame, unless paused."""
        if self._paused_ms is None:
            self._taken = self._frames.frame(self._text)
            self._show(self._taken)

    def refresh_risk(self) -> None:
        """Update the countdowns."""
        if self._paused_ms is None:
            self._show_risk(self._frames.at_risk(self._text), wall_ms())

    def action_pause(self) -> None:
        """Pause the screen, or continue."""
        self._paused_ms = None if self._paused_ms is not None else wall_ms()
        if self._paused_ms is None:
            self.refresh_frame()
        elif self._taken is not None:
            self._write_head(self._taken)

    def action_filter(self) -> None:
        """Open the filter."""
        field = self.query_one("#filter", Input)
        field.add_class("open")
        field.focus()

    def action_clear(self) -> None:
        """Close the filter and clear it."""
        field = self.query_one("#filter", Input)
        field.value = ""
        self._close_filter()

    def action_turn(self, step: int) -> None:
        """Switch to another table."""
        self._active = _PANES[(_PANES.index(self._active) + step) % len(_PANES)]
        self._arrange()
        self._close_filter()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Remember the focused table, however it was reached."""
        if event.widget.id in _PANES:
            self._active = event.widget.id

    def on_data_table_row_selected(self, event: Pane.RowSelected) -> None:
        """Explain the expiration that was chosen."""
        if event.data_table.id == "expired":
            self._explain(event.row_key.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types; while paused, only the frozen frame is filtered."""
        self._text = event.value
        if self._paused_ms is None:
            self.refresh_frame()
        elif self._taken is not None:
            self._show(narrowed(self._taken, self._text))

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Keep the filter and go back to the table."""
        self._close_filter()

    def _pane(self, name: str) -> Pane:
        return self.query_one(f"#{name}", Pane)

    def _close_filter(self) -> None:
        field = self.query_one("#filter", Input)
        field.set_class(bool(field.value), "open")
        self._pane(self._active).focus()

    def _arrange(self) -> None:
        active = self._active
        self.query_one("#body").set_class(self._is_narrow, "narrow")
        for name in _PANES:
            self._pane(name).set_class(name == active, "shown")
        self.query_one("#right").set_class(active == "expired", "hidden")
        self._pane("expired").set_class(active != "expired", "hidden")

    def _show(self, frame: Frame) -> None:
        now_ms = frame.now.at_ms
        self._write_head(frame)
        self._pane("expired").border_title = f"expired ({frame.matched:,})"
        self._pane("expired").fill((row.id, expired_cells(row)) for row in frame.expirations)
        decides = frame.now.health.as_of_ms is None
        self._pane("groups").fill(
            (group.group_id, group_cells(group, now_ms=now_ms, decides=decides)) for group in frame.groups
        )
        self._show_risk(frame.at_risk, now_ms)

    def _show_risk(self, rows: list[AtRisk], now_ms: int) -> None:
        decides = self._taken is None or self._taken.now.health.as_of_ms is None
        self._pane("risk").fill(
            (f"{row.group_id}\n{row.member_id}", risk_cells(row, now_ms=now_ms, decides=decides)) for row in rows
        )

    def _write_head(self, frame: Frame) -> None:
        lines = head(frame)
        if self._paused_ms is not None:
            lines.append(Text(f"PAUSED at {time_of_day(self._paused_ms)}; p continues", "reverse"))
        self.query_one("#head", Static).update(Text("\n").join(lines))

    def _explain(self, id_: str | None) -> None:
        rows = self._taken.expirations if self._taken else []
        row = next((row for row in rows if row.id == id_), None)
        if row is not None:
            self.push_screen(Detail(row))
