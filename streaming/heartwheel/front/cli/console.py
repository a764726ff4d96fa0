"""Consoles and options that all commands share: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain, plain_json, plain_lines

if TYPE_CHECKING:
    from heartwheel.settings import LoadedSettings

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Configuration file; else $HEARTWHEEL_CONFIG, conf/heartwheel.toml."),
]
"""The option that names the configuration file."""

SetFlags = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set any key, such as engine.shards=16; can be repeated."),
]
"""The option that sets any key."""

BootstrapFlag = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", metavar="HOST:PORT", help="Where Kafka is (kafka.bootstrap_servers)."),
]
"""The option for the brokers."""

MasterFlag = Annotated[str | None, typer.Option("--master", help="Where the job runs (spark.master).")]
"""The option for Spark's master."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
"""The option for JSON output."""

_PLAIN_WIDTH: Final = 200


class PlainConsole(Console):
    """A console that removes control characters from printed texts, so that they cannot control a terminal.

    If the output is no terminal, no line ends with blanks. Line breaks pass here. So an id goes through `plain` where
    it becomes part of a sentence, and through `PlainTable` where it is a cell.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object; Rich's own controls stay, those in texts do not."""
        segments = (
            segment if segment.control else segment._replace(text=plain_lines(segment.text))
            for segment in super().render(renderable, options)
        )
        yield from segments if self.is_terminal else _without_padding(segments)


def _without_padding(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Yield segments without the blanks before the ends of their lines."""
    for line, ends in Segment.split_lines_terminator(segments):
        while ends and line and not line[-1].control:
            last = line.pop()
            if text := last.text.rstrip(" "):
                line.append(last._replace(text=text))
                break
        yield from line
        if ends:
            yield Segment.line()


class PlainTable(Table):
    """A table of texts, each of which is made `plain` before its width is measured."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; texts with line breaks of our own are given as `rich.text.Text`."""
        super().add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells), **options)


class PlainFormatter(logging.Formatter):
    """A formatter that writes a record as one line, whatever it contains; only a traceback has more."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as text."""
        return plain_lines(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Return the line of a record, whose message other handlers use too."""
        mine = copy.copy(record)
        mine.message = plain(record.message)
        return super().formatMessage(mine)


def stdout() -> Console:
    """Return the console for data; if it is no terminal it is wide enough for most lines, whatever `COLUMNS` says.

    A program that has loaded readline, such as Python's prompt, passes `COLUMNS` of 80 to all programs that it starts.
    """
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return PlainConsole(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def stderr() -> Console:
    """Return the console for logs, progress and errors."""
    return PlainConsole(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_error(error: HeartwheelError) -> None:
    """Print an error and its hint, one line each, without a traceback."""
    console = stderr()
    console.print(Text.assemble(("error: ", "bold red"), _indented(str(error))))
    if error.hint:
        console.print(Text.assemble(("hint: ", "bold"), _indented(error.hint)))


def _indented(text: str) -> str:
    """Indent the lines after the first, so that none looks like an error or a hint of its own."""
    return re.sub(r"\n(?! )", "\n  ", plain_lines(text))


def print_json(value: object) -> None:
    """Print a value as JSON."""
    typer.echo(plain_json(json.dumps(value, indent=2, ensure_ascii=False)))


def print_json_line(value: object) -> None:
    """Print a value, which may be a struct, as JSON on one line."""
    import msgspec

    typer.echo(plain_json(msgspec.json.encode(value).decode()))


def plain_table(*headings: str) -> Table:
    """Return a table that is readable without colour and without a box."""
    table = PlainTable(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def figures_table(
    heading: str, rows: Mapping[str, object], figures: str = "", *, justify: JustifyMethod = "left"
) -> Table:
    """Return a table of names and figures.

    Args:
        heading: of the names.
        figures: the heading of the figures.
        justify: how the figures are placed in their column.
    """
    table = plain_table(heading, figures)
    table.columns[1].justify = justify
    for name, figure in rows.items():
        table.add_row(name, str(figure))
    return table


def load(config: Path | None, flags: Sequence[str] | None, **named: Any) -> LoadedSettings:
    """Load the configuration for a command.

    Args:
        flags: the texts of `--set`.
        named: values of named options by path with `__` between the parts, such as `engine__shards`; `None` is
            left out.

    Raises:
        SettingsError: with everything that is wrong.
    """
    from heartwheel.settings import load_settings

    return load_settings(config, os.environ, [*(flags or ()), *_texts(named)])


def _texts(named: Mapping[str, Any]) -> list[str]:
    return [f"{path.replace('__', '.')}={value}" for path, value in named.items() if value is not None]
