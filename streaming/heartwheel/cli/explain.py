"""`heartwheel explain`: why a broker's log says that a consumer was kicked, with no Kafka and no Spark."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from heartwheel.cli.console import load, stderr, stdout
from heartwheel.cli.explain_output import printer, say_what_was_read, show_summary, show_unknown, show_verdicts
from heartwheel.errors import HeartwheelError
from heartwheel.wall_clock import wall_ms

if TYPE_CHECKING:
    from heartwheel.explain.run import Wanted
    from heartwheel.explain.scan import Scanned
    from heartwheel.wire.explained import ExplainedEvent

_STDIN: Final = "-"
_PROGRESS_FROM_BYTES: Final = 32 << 20
_EVENTS_AT_ONCE: Final = 1_000
_AGO: Final = re.compile(r"^(\d+)(s|m|min|h|d)$")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def explain(
    *,
    files: Annotated[list[str], typer.Argument(metavar="FILE..", help="Logs of brokers, also gzipped; - reads stdin.")],
    group: Annotated[str | None, typer.Option(metavar="ID", help="Only this group.")] = None,
    member: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this member, by member, client or instance id.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on: 2026-11-22T02:12, or 15m ago.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    utc_offset: Annotated[
        str, typer.Option(metavar="+HH:MM", help="The time zone of times that name none, as the broker's own layout.")
    ] = "+00:00",
    summary: Annotated[bool, typer.Option("--summary", help="A table of the groups, and no events.")] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Show what looks like a coordinator's line and is not understood.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the logs grow, until Ctrl-C.")] = False,
    fail_on_expired: Annotated[
        bool, typer.Option("--fail-on-expired", help="Exit with 1 if a coordinator threw a member out.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Show it in a browser, until Ctrl-C.")] = False,
    host: Annotated[str | None, typer.Option(help="With --page: where to listen (dashboard.host).")] = None,
    port: Annotated[
        int | None, typer.Option(help="With --page: likewise; 0 takes any that is free (dashboard.port).")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="With --page: open it in a browser.")] = False,
) -> None:
    """Explain a broker's log: who was thrown out of which consumer group, when and why, and what it cost.

    Every broker since 2.4 writes it into its ordinary log at INFO (older ones write less); nothing has to be changed at
    the broker or at its clients. Logs of several brokers, and rotated ones, are merged by time. The layout does not
    matter: log4j, JSON, what Docker, Kubernetes, journald or CloudWatch make of it.

    For example:

        heartwheel explain /var/log/kafka/server.log

        kubectl logs kafka-0 | heartwheel explain - --summary

        heartwheel explain server.log server.log.*.gz --group orders --since 2026-11-22T02:00

        heartwheel explain broker-*.log --json | jq 'select(.kind == "expired")'

        heartwheel explain --page server.log

        kubectl logs -f kafka-0 | heartwheel explain --page --follow -
    """
    from heartwheel.explain.lines import Lines
    from heartwheel.explain.run import Wanted
    from heartwheel.explain.scan import Scanned
    from heartwheel.explain.summary import Summary

    offset_ms = _offset(utc_offset)
    wanted = Wanted(group, member, _time(since, "--since", offset_ms), _time(until, "--until", offset_ms))
    if page:
        _show_page(files, wanted, offset_ms, follow=follow, host=host, port=port, open_browser=open_)
        return
    scanned, sums, lines = Scanned(), Summary(), Lines()
    show = printer(json=json, silent=summary or unknown, lines=lines)
    kicked = False
    try:
        for event in _events(files, scanned, offset_ms, follow=follow):
            if wanted.takes(event):
                sums.add(event)
                kicked = kicked or event.kind in _kicks()
                show(event)
    except KeyboardInterrupt:
        if not follow:
            raise
    if unknown:
        show_unknown(scanned, json=json)
    elif summary:
        show_summary(sums, json=json)
    elif not json:
        show_verdicts(sums)
    say_what_was_read(scanned, files, unknown=unknown)
    if fail_on_expired and kicked:
        raise typer.Exit(1)


def _show_page(
    files: list[str],
    wanted: Wanted,
    offset_ms: int,
    *,
    follow: bool,
    host: str | None,
    port: int | None,
    open_browser: bool,
) -> None:
    """Serve the page while the logs are read, and after that until Ctrl-C."""
    from heartwheel.cli.signals import stopped_by_signals
    from heartwheel.explain.page import LogPage
    from heartwheel.explain.run import explain_logs, follow_logs
    from heartwheel.explain.scan import Scanned

    settings = load(None, None, dashboard__host=host, dashboard__port=port).settings
    over, scanned, stdin = threading.Event(), Scanned(), sys.stdin.buffer
    with stopped_by_signals(over.set), LogPage(settings, files) as shown:
        stdout().print(Text(shown.url, style="bold cyan"))
        stderr().print("reading; Ctrl-C ends it", markup=False)
        if open_browser:
            typer.launch(shown.url)
        if follow:
            for events in follow_logs(
                files, scanned, stdin=stdin, utc_offset_ms=offset_ms, go_on=lambda: not over.is_set()
            ):
                shown.take([event for event in events if wanted.takes(event)], scanned, follows=True)
        else:
            found = explain_logs(files, scanned, stdin=stdin, utc_offset_ms=offset_ms)
            while some := list(islice((event for event in found if wanted.takes(event)), _EVENTS_AT_ONCE)):
                shown.take(some, scanned)
                if over.is_set():
                    return
            shown.take([], scanned)
        say_what_was_read(scanned, files, unknown=False)
        while not over.wait(1.0):
            if not shown.running:
                raise HeartwheelError("the page has ended by itself", hint="the lines above may tell why")


def _kicks() -> frozenset[str]:
    from heartwheel.wire.explained import KICKS

    return KICKS


def _events(files: list[str], scanned: Scanned, offset_ms: int, *, follow: bool) -> Iterator[ExplainedEvent]:
    from heartwheel.explain.run import explain_logs, follow_logs

    stdin = sys.stdin.buffer
    if follow:
        for events in follow_logs(files, scanned, stdin=stdin, utc_offset_ms=offset_ms):
            yield from events
            if events:
                sys.stdout.flush()
        return
    with _progress(files) as advance:
        yield from explain_logs(files, scanned, stdin=stdin, utc_offset_ms=offset_ms, progress=advance)


def _offset(text: str) -> int:
    from heartwheel.explain.times import parse_utc_offset_ms

    try:
        return parse_utc_offset_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--utc-offset") from None


def _time(text: str | None, option: str, offset_ms: int) -> int | None:
    from heartwheel.explain.times import number_ms

    if text is None:
        return None
    ago = _AGO.match(text.removesuffix(" ago"))
    if ago is not None:
        return wall_ms() - int(ago[1]) * _UNIT_MS[ago[2]]
    if text.isdecimal() and (whole_ms := number_ms(int(text))) is not None:
        return whole_ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text} is no time such as 2026-11-22T02:12 or 15m", param_hint=option) from None
    bare = moment.tzinfo is None
    return int(moment.replace(tzinfo=UTC if bare else moment.tzinfo).timestamp() * 1000) - (offset_ms if bare else 0)


@contextmanager
def _progress(files: Iterable[str]) -> Iterator[Callable[[int], None] | None]:
    """Show a bar while large files are read; it counts what is read, so a gzipped one has no end to show."""
    console = stderr()
    names = list(files)
    if not console.is_terminal or sys.stdout.isatty():
        yield None
        return
    total = _size_of(names)
    if total is not None and total < _PROGRESS_FROM_BYTES:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=total)
        yield lambda size: progress.advance(task, size)


def _size_of(names: list[str]) -> int | None:
    """Sum up the sizes of files, bytes; `None` if what is to be read cannot be known."""
    if any(name == _STDIN or name.endswith(".gz") for name in names):
        return None
    try:
        return sum(Path(name).stat().st_size for name in names)
    except OSError as error:
        message = f"{error.filename} cannot be read: {error.strerror}"
        raise HeartwheelError(message, hint="name a broker's log") from error
