"""The command-line application: its commands, its exit codes, and its error messages."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from importlib import metadata
from typing import Annotated, Final, cast

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain_lines
from heartwheel.front.cli import (
    audit,
    beat,
    config,
    dashboard,
    demo,
    doctor,
    explain,
    feed,
    gateway,
    inspect,
    notify,
    operations,
    replay,
    skip,
    tap,
    top,
    topics,
)
from heartwheel.front.cli import run as run_job
from heartwheel.front.cli.console import print_error
from heartwheel.kafka.broker.spark_release import UnfitSparkError
from heartwheel.settings import SettingsError

_CommandLineError: Final = cast("type[Exception]", typer.BadParameter.__mro__[2])

EXIT_FAILED: Final = 1
"""Exit code if something failed or was found to be bad."""

EXIT_USAGE: Final = 2
"""Exit code if the command or the configuration is wrong."""

_REFUSED_BY_SYSTEM: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""Reasons of the system for refusing to write a file or folder; not bugs of ours."""

_OWN: Final = frozenset({"heartwheel", "heartwheel_beats", "timing_wheel"})
"""Packages of ours: a module of theirs that cannot be found is a bug."""

EXIT_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""

_ABOUT: Final = """\
Tell who was expired from which consumer group, when and why.

Members send heartbeats to a Kafka topic; heartwheel keeps their session timeouts on timing wheels in Spark
Structured Streaming, and writes member expirations and rebalance triggers back to Kafka.

First steps:

\b
    heartwheel explain FILE      why a broker's own log says a consumer was kicked; needs nothing else
    heartwheel demo              watch it work, with a broker and members of its own
    heartwheel doctor            is everything here that it needs?
    heartwheel topics --create   make the topics
    heartwheel run               start the job
    heartwheel feed              simulate members that beat, pause and die
    heartwheel beat -- WORKER    start a worker, and beat while it lives
    heartwheel gateway           take beats over HTTP, such as curl's
    heartwheel tap LOG           pass on what real groups send, from a broker's request log
    heartwheel inspect           what a checkpoint holds
    heartwheel dashboard         who was expired, why, and who is next, in a browser
    heartwheel top               the same picture in a terminal
    heartwheel notify            post to a webhook who was expired and who came back
    heartwheel replay            what the coordinator decides on a log of requests
    heartwheel audit             is what the job wrote what its log says?
    heartwheel skip              get the job past a record that ends it
    heartwheel config            every setting, and which layer it comes from
"""
_CODES: Final = "Exit codes: 0 fine, 1 failed or something bad was found, 2 wrong usage or configuration, 130 Ctrl-C."

app = typer.Typer(
    name="heartwheel",
    help=_ABOUT,
    epilog=_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature of a Typer callback
    if wanted:
        typer.echo(f"heartwheel {metadata.version('heartwheel')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The options before a command; its help text is given above."""


for _command in (
    demo.demo,
    run_job.run,
    feed.feed,
    beat.beat,
    gateway.gateway,
    tap.tap,
    topics.topics,
    inspect.inspect,
    replay.replay,
    audit.audit,
    operations.operations,
    dashboard.dashboard,
    top.top,
    notify.notify,
    explain.explain,
    skip.skip,
    doctor.doctor,
    config.config,
):
    app.command()(_command)


def main() -> None:
    """Run the command line; a failure ends the process with its exit code.

    Success returns: a managed service calls this in a process of its own, and takes any `SystemExit` for a failure.
    """
    sys.excepthook = lambda *error: typer.echo(
        plain_lines("".join(traceback.format_exception(*error))), nl=False, err=True
    )
    if code := run():
        sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after the program's name; `None` takes those of the process.

    Returns:
        The exit code.
    """
    try:
        code = app(arguments, prog_name="heartwheel", standalone_mode=False)
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except typer.Abort:
        return EXIT_FAILED
    except _CommandLineError as error:
        _print_usage_error(error)
        return EXIT_USAGE
    except (HeartwheelError, OSError, ModuleNotFoundError) as error:
        known = _known(error)
        if known is None:
            raise
        print_error(known)
        return EXIT_USAGE if isinstance(error, SettingsError | UnfitSparkError) else EXIT_FAILED
    return code if isinstance(code, int) else 0


def _known(error: HeartwheelError | OSError | ModuleNotFoundError) -> HeartwheelError | None:
    """Return the error to print; `None` for a bug."""
    match error:
        case HeartwheelError():
            return error
        case OSError():
            return _file_error(error)
    package = (error.name or "").partition(".")[0]
    if not package or package in _OWN:
        return None
    hint = "make setup installs what every command needs; what make setup-explain installs is for explain alone"
    return HeartwheelError(f"the package {package} is not installed here", hint=hint)


def _file_error(error: OSError) -> HeartwheelError | None:
    """Return the error for a file that the system refuses to read or write; `None` if the cause is another."""
    if error.errno not in _REFUSED_BY_SYSTEM or error.filename is None:
        return None
    where = os.fsdecode(error.filename)
    hint = "start it in a folder that this user may write to, or free some space there"
    return HeartwheelError(f"{where} cannot be read or written: {error.strerror}", hint=hint)


def _print_usage_error(error: Exception) -> None:
    """Print a usage error of Typer, whose words may contain ids."""
    words = io.StringIO()
    error.show(words)  # type: ignore[attr-defined]  # only their base class shows which errors these are
    typer.echo(plain_lines(words.getvalue()), nl=False, err=True)
