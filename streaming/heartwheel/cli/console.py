"""Consoles and options that all commands share: data goes to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heartwheel.errors import HeartwheelError
from heartwheel.settings import LoadedSettings, load_settings

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
"""The option that names the brokers."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
"""The option that asks for output for machines."""

_PLAIN_WIDTH: Final = 200


def stdout() -> Console:
    """Open the console for data; where no person looks it is wide, so that no line is cut."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=False)


def stderr() -> Console:
    """Open the console for logs, progress and errors."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_error(error: HeartwheelError) -> None:
    """Print an error and its hint, one line each, without a traceback."""
    console = stderr()
    console.print(Text.assemble(("error: ", "bold red"), str(error)))
    if error.hint:
        console.print(Text.assemble(("hint: ", "bold"), error.hint))


def print_json(value: object) -> None:
    """Print a value as JSON for machines."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def plain_table(*headings: str) -> Table:
    """Make a table that reads well without colour and without a box."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def load(config: Path | None, flags: Sequence[str] | None, **named: Any) -> LoadedSettings:
    """Load the configuration for a command.

    Args:
        config: the file that `--config` names.
        flags: the texts of `--set`.
        named: values of named options by path with `__` between the parts, such as `engine__shards`; `None` is
            left out.

    Raises:
        SettingsError: with everything that is wrong.
    """
    return load_settings(config, os.environ, [*(flags or ()), *_texts(named)])


def _texts(named: Mapping[str, Any]) -> list[str]:
    return [f"{path.replace('__', '.')}={value}" for path, value in named.items() if value is not None]
