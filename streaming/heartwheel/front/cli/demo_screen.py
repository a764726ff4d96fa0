"""What a person sees of the demo: events line by line, and below them the figures, kept up to date."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from heartwheel.base.phrases import count
from heartwheel.base.plain import plain
from heartwheel.base.wall_clock import wall_ms
from heartwheel.front.cli.console import PlainConsole, stderr

if TYPE_CHECKING:
    from heartwheel.front.demo.tally import Tally

_PLAIN_EVERY_S: Final = 10.0
_REDRAWS_A_S: Final = 4


class DemoScreen:
    """A demo's screen: on a terminal figures at the bottom, elsewhere a line of them now and then on stderr.

    Args:
        address: of the dashboard's page; said first, and kept in sight on a terminal.
    """

    def __init__(self, tally: Tally, *, address: str = "") -> None:
        self._tally, self._address = tally, address
        # On a terminal all goes through one console: two would draw over each other.
        self._console = PlainConsole(highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())
        self._live = self._console.is_terminal
        self._spinner = Spinner("dots")
        self._display = Live(get_renderable=self._draw, console=self._console, refresh_per_second=_REDRAWS_A_S)
        self._said_s, self._phase = 0.0, ""

    def __enter__(self) -> Self:
        if self._address:
            self._console.print(Text(self._address, style="bold cyan"))
        if self._live:
            self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live:
            self._display.stop()

    def say(self, line: Text) -> None:
        """Show one line of events."""
        self._console.print(line, no_wrap=self._live, overflow="ellipsis" if self._live else None)

    def note(self, words: str) -> None:
        """Print a line that is no event."""
        (self._console if self._live else stderr()).print(Text(words, style="dim"))

    def refresh(self) -> None:
        """Show a plain line of figures if it is time to; a terminal is redrawn by itself."""
        if self._live:
            return
        now_s = time.monotonic()
        changed, self._phase = self._tally.phase != self._phase, self._tally.phase
        if changed or now_s - self._said_s >= _PLAIN_EVERY_S:
            self._said_s = now_s
            stderr().print(Text(plain_figures(self._tally)))

    def _draw(self) -> RenderableType:
        tally = self._tally
        self._spinner.update(text=f" {tally.phase}, {tally.running_s:.0f} s")
        page = Text.assemble(("watch it at ", "dim"), (self._address, "bold cyan")) if self._address else Text()
        if tally.clock_ms < 0 and not tally.sent:
            return Group(page, self._spinner)
        return Group(Rule(style="dim"), page, figures(tally), Text(nearest(tally), style="dim"), self._spinner)


def figures(tally: Tally) -> Table:
    """Lay the figures out in two rows."""
    table = Table.grid(padding=(0, 3))
    cells = [f"[dim]{name}[/] [bold]{value}[/]" for name, value in _pairs(tally)]
    half = (len(cells) + 1) // 2
    table.add_row(*cells[:half])
    table.add_row(*cells[half:])
    return table


def plain_figures(tally: Tally) -> str:
    """Return the figures in one line."""
    parts = ", ".join(f"{name} {value}" for name, value in _pairs(tally))
    return f"-- {tally.phase}, {tally.running_s:.0f} s: {parts}"


def _pairs(tally: Tally) -> list[tuple[str, str]]:
    from heartwheel.base.percentiles import percentile

    late = list(tally.lateness_ms)
    return [
        ("sent", f"{tally.sent:,}"),
        ("members", f"{tally.members:,} in {count(tally.groups, 'group')}"),
        ("killed", f"{tally.turns.get('killed', 0):,}"),
        ("paused", f"{tally.turns.get('paused', 0):,}"),
        ("left", f"{tally.turns.get('left', 0):,}"),
        ("expired", f"{tally.expired.total():,}"),
        ("rebalances begun", f"{tally.rebalances:,}"),
        ("lateness p50", f"{percentile(late, 0.5) / 1000:.1f} s"),
        ("p99", f"{percentile(late, 0.99) / 1000:.1f} s"),
        ("last batch", f"{tally.batch_ms[-1] / 1000:.2f} s" if tally.batch_ms else "-"),
    ]


def nearest(tally: Tally) -> str:
    """Return the member that is nearest to its expiry, as of the newest reports."""
    now_ms = wall_ms()
    member = tally.next_at_risk(now_ms)
    if member is None:
        return ""
    left_s = (member.deadline_ms - now_ms) / 1000
    who = f"{plain(member.member_id)} of {plain(member.group_id)}"
    return f"nearest to expiry: {who}, {f'{left_s:.0f} s left' if left_s > 0 else 'due'}"
