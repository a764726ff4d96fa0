"""The window that explains why a member was expired."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from heartwheel.base.phrases import length
from heartwheel.base.wall_clock import moment_words
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.why import why
from heartwheel.readers.top.cells import short


class Detail(ModalScreen[None]):
    """The screen that explains one expiration."""

    CSS = """
    Detail { align: center middle; }
    Detail VerticalScroll { width: 90%; max-width: 110; height: auto; max-height: 90%; border: round $accent;
        background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "Back")]

    def __init__(self, row: Expiration) -> None:
        super().__init__()
        self._row = row

    def compose(self) -> ComposeResult:
        """Yield the widgets of the window."""
        with VerticalScroll() as box:
            box.border_title = "why was it expired?"
            box.border_subtitle = "Escape goes back"
            yield Static(explanation(self._row))


def explanation(row: Expiration) -> Text:
    """Return everything about an expiration, the reasons first."""
    text = Text("\n").join(Text(short(sentence, cells_max=400)) for sentence in why(row))
    text.append("\n")
    for name, value in _facts(row):
        text.append(f"\n{name:<18}", "dim").append(value)
    return text


def _facts(row: Expiration) -> list[tuple[str, str]]:
    back = "not so far" if row.returned_ms is None else moment_words(row.returned_ms)
    return [
        ("group", short(row.group_id)),
        ("member", short(row.member_id)),
        ("instance", short(row.group_instance_id) or "-"),
        ("client, host", f"{short(row.client_id) or '-'}, {short(row.client_host) or '-'}"),
        ("last seen", "-" if row.last_seen_ms is None else moment_words(row.last_seen_ms)),
        ("deadline", moment_words(row.deadline_ms)),
        ("known", f"{moment_words(row.append_ms)}, {length(row.append_ms - row.deadline_ms)} after the deadline"),
        ("came back", back),
        ("generation, state", f"{row.generation_id}, {row.group_state}"),
        ("record", f"partition {row.partition}, offset {row.offset}, id {row.id}"),
    ]
