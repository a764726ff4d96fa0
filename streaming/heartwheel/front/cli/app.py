"""The command-line application: its commands, its exit codes, and its error messages."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, Final, cast

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain_lines
from heartwheel.front.cli.commands import LazyGroup

_CommandLineError: Final = cast("type[Exception]", typer.BadParameter.__mro__[2])

_AGAIN_S: Final = 0.05

EXIT_FAILED: Final = 1
"""Exit code if something failed or was found to be bad."""

EXIT_USAGE: Final = 2
"""Exit code if the command or the configuration is wrong."""

_REFUSED_BY_SYSTEM: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT}
"""Reasons of the system for refusing to write a file or folder; not bugs of ours."""

EXIT_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as shells have it."""

_ABOUT: Final = """\
Tell who was expired from which consumer group, when and why.

Members send heartbeats to a Kafka topic; heartwheel keeps their session timeouts on timing wheels in Spark
Structured Streaming, and writes member expirations and rebalance triggers back to Kafka.
"""
_CODES: Final = "Exit codes: 0 fine, 1 failed or something bad was found, 2 wrong usage or configuration, 130 Ctrl-C."

app = typer.Typer(
    name="heartwheel",
    cls=LazyGroup,
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
        from heartwheel.front.cli.versions import version_lines

        typer.echo("\n".join(version_lines()))
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the versions found here and exit."
        ),
    ] = False,
) -> None:
    """The options before a command; its help text is given above."""


def main() -> None:
    """Run the command line; a failure ends the process with its exit code.

    Success returns: a managed service calls this in a process of its own, and takes any `SystemExit` for a failure.
    """
    _open_closed_streams()
    sys.excepthook = lambda *error: typer.echo(
        plain_lines("".join(traceback.format_exception(*error))), nl=False, err=True
    )
    sys.unraisablehook = _interrupt_again
    if code := run():
        sys.exit(code)


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Repeat a Ctrl-C that came within a callback, where Python ignores what is raised, until it was raised elsewhere.

    Python ignores what is raised here, too, and a wait that begins as the signal comes is not ended by it.
    """
    if not isinstance(ignored.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    from heartwheel.base.worker import Worker

    raised, main_thread = threading.Event(), cast("int", threading.main_thread().ident)

    def interrupt(_number: int, frame: FrameType | None) -> None:
        if any(each.f_code is _interrupt_again.__code__ for each, _ in traceback.walk_stack(frame)):
            return
        signal.signal(signal.SIGINT, before)
        raised.set()
        raise KeyboardInterrupt

    def repeat() -> None:
        while not raised.wait(_AGAIN_S):
            signal.pthread_kill(main_thread, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    Worker(repeat, "heartwheel-interrupt").start()


def _open_closed_streams() -> None:
    """Open empty ones for the standard streams that the caller has closed, for which Python has `None`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - it stays open


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
    except (HeartwheelError, OSError) as error:
        known = error if isinstance(error, HeartwheelError) else _file_error(error)
        if known is None:
            raise
        from heartwheel.front.cli.console import print_error

        _drop_output()
        print_error(known)
        return known.exit_code
    return code if isinstance(code, int) else 0


def _file_error(error: OSError) -> HeartwheelError | None:
    """Return the error for a file that the system refuses to read or write; `None` if the cause is another."""
    if error.errno not in _REFUSED_BY_SYSTEM:
        return None
    if error.filename is None:  # of what is open already: the output, or a file
        hint = "free some space where the output goes, and where the files of this command are"
        return HeartwheelError(f"nothing more can be written: {error.strerror}", hint=hint)
    where = os.fsdecode(error.filename)
    hint = "start it in a folder that this user may write to, or free some space there"
    return HeartwheelError(f"{where} cannot be read or written: {error.strerror}", hint=hint)


def _drop_output() -> None:
    """Drop what an output still holds that takes nothing more: it would fail again when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _print_usage_error(error: Exception) -> None:
    """Print a usage error of Typer, whose words may contain ids."""
    words = io.StringIO()
    error.show(words)  # type: ignore[attr-defined]  # only their base class shows which errors these are
    typer.echo(plain_lines(words.getvalue()), nl=False, err=True)
