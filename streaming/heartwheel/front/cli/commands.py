"""The commands: what each needs, one line about it, and its module, which is imported when the command runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

from heartwheel.front.cli.extras import ALL, require

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context, HelpFormatter


class CommandEntry(NamedTuple):
    """A command of the program.

    Args:
        extra: the extra of the distribution that it needs, empty if none.
        summary: one line about it.
    """

    extra: str
    summary: str


COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "explain": CommandEntry("", "why a broker's own log says a consumer was kicked"),
    "advise": CommandEntry("", "which settings would have prevented what, from brokers' logs"),
    "replay": CommandEntry("", "what the coordinator decides on a log of requests, and other timeouts"),
    "beat": CommandEntry("", "start a worker, and beat while it lives"),
    "config": CommandEntry("", "every setting, and which layer it comes from"),
    "dashboard": CommandEntry("page", "who was expired, why, and who is next, in a browser"),
    "watch": CommandEntry("page", "keep and show what brokers' own logs say, as a service"),
    "top": CommandEntry("page", "the same picture in a terminal"),
    "notify": CommandEntry("page", "post to a webhook who was expired and who came back"),
    "gateway": CommandEntry("page", "take beats over HTTP, such as curl's"),
    "mcp": CommandEntry("mcp", "answer the questions of a language model about all this"),
    "topics": CommandEntry("kafka", "make the topics, or compare them with what is needed"),
    "doctor": CommandEntry("kafka", "is everything here that it needs?"),
    "feed": CommandEntry("kafka", "simulate members that beat, pause and die"),
    "audit": CommandEntry("kafka", "is what the job wrote what its log says?"),
    "tap": CommandEntry("kafka", "pass on what real groups send, from a broker's request log"),
    "tick": CommandEntry("kafka", "write ticks to a topic: a time for its quiet partitions"),
    "run": CommandEntry("job", "the job, until SIGTERM"),
    "inspect": CommandEntry("job", "what a checkpoint holds"),
    "operations": CommandEntry("job", "delayed operations: the job that completes or expires them"),
    "skip": CommandEntry("job", "get the job past a record that ends it"),
    "demo": CommandEntry(ALL, "watch it work, with a broker and members of its own"),
}
"""Every command, those of one extra in sequence. `--help`, the README and the tests of packaging go by this table."""


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of a command, whose docstring is its help."""
    function: Callable[..., Any] = getattr(import_module(f"heartwheel.front.cli.{name}"), name)
    return function


class _Loaded(Mapping[str, "ClickCommand"]):
    """The commands by name; a module is imported when its command is asked for."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __getitem__(self, name: str) -> ClickCommand:
        return _load(name, COMMANDS[name].extra)


@functools.cache
def _load(name: str, extra: str) -> ClickCommand:
    function = function_of(name)

    @functools.wraps(function)
    def run(**arguments: Any) -> Any:
        if extra:
            require(extra, f"heartwheel {name}")
        return function(**arguments)

    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(run)
    return get_command(single)


class LazyGroup(TyperGroup):
    """The program as a group of commands that are imported when they run."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Loaded()  # type: ignore[assignment]  # nobody adds to it

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 - the signature of Typer
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """Write the commands, each extra with its own."""
        width = max(map(len, COMMANDS))
        for extra, names in groupby(COMMANDS, key=lambda name: COMMANDS[name].extra):
            with formatter.section(f'With "heartwheel[{extra}]"' if extra else "Commands"):
                formatter.write_dl([(name.ljust(width), COMMANDS[name].summary) for name in names])
