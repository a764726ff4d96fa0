"""`heartwheel explain`: why a consumer was removed, from a broker's log, without Kafka and without Spark."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.audit_broker_log import parsed_zone
from heartwheel.front.cli.console import ConfigFile, SetFlags, load, stderr
from heartwheel.front.cli.explain_answers import show_answers, show_summary
from heartwheel.front.cli.explain_output import (
    causes_of,
    check_found,
    printer,
    say_what_was_read,
    say_zone,
    show_unknown,
)
from heartwheel.front.cli.explain_page import show_page
from heartwheel.front.cli.options import (
    AllowHostFlag,
    CausesFlag,
    HistoryFlag,
    HostFlag,
    LogFiles,
    PortFlag,
    ZoneFlag,
    listening,
)

if TYPE_CHECKING:
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.explain.scan import Scanned
    from heartwheel.sources.explain.summary import LogSummary
    from heartwheel.sources.explain.wanted import Wanted
    from heartwheel.sources.watch.log_source import LogSource
    from heartwheel.wire.explained import ExplainedEvent

_STDIN: Final = "-"
_OUT: Final = "out"
_HINT: Final = "the broker may log at WARN: kafka.coordinator.group and org.apache.kafka.coordinator.group need INFO"
_PROGRESS_FROM_BYTES: Final = 32 << 20


def explain(
    *,
    files: LogFiles = None,
    history: HistoryFlag = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this group, or those of a pattern: 'pay*'; can be repeated."),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only this member, by member, client or instance id; likewise."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on: 2026-11-22T02:12, or 15m ago.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only before this time.")] = None,
    causes: CausesFlag = None,
    utc_offset: ZoneFlag = None,
    summary: Annotated[bool, typer.Option("--summary", help="A table of the groups, and no events.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Every event, also in a terminal.")] = False,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, max=100_000, help="The last N events.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Events of a kind, such as expired; out is all removals. Can be repeated."),
    ] = None,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Show lines of the coordinator that were not understood.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Keep reading as the logs grow, until Ctrl-C.")] = False,
    fail_on_expired: Annotated[
        bool,
        typer.Option("--fail-on-expired", help="Exit with 1 if a coordinator threw a member out, or nothing was read."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Show it in a browser, until Ctrl-C.")] = False,
    host: HostFlag = None,
    port: PortFlag = None,
    open_: Annotated[bool, typer.Option("--open", help="With --page: open it in a browser.")] = False,
    allow_host: AllowHostFlag = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="With --page: let others in without a login.")
    ] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Explain a broker's log: who was thrown out of which consumer group, when and why, and what it cost.

    A terminal shows a summary of each group, and with `--all`, `--last` or `--only` the events. A pipe gets both. A
    consumer's own log is read too, but only the broker's log says why a coordinator removed it.

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

        heartwheel explain server.log --causes events.json --causes orders-1=gc.log

        heartwheel explain --history history.db --since 3d --group orders
    """
    from heartwheel.sources.explain.lines import Lines
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.explain.scan import Scanned
    from heartwheel.sources.explain.summary import LogSummary
    from heartwheel.sources.explain.wanted import Wanted
    from heartwheel.sources.watch.log_source import LogSource

    zone = LocalZone() if utc_offset is None else parsed_zone(utc_offset)
    wanted = Wanted(group or (), member or (), *_period(since, until, zone))
    known = causes_of(causes, zone, lambda: load(config, set_).settings.watch)
    source = LogSource(files or [], history, sys.stdin.buffer, zone, known)
    listens = listening("dashboard", host=host, port=port, allow_host=allow_host, insecure=insecure)
    _check_words(source, {**listens, "open": open_ or None}, follow=follow, unknown=unknown, page=page, json=json)
    if page:
        show_page(source, wanted, load(config, set_, **listens).settings, follow=follow, open_browser=open_)
        return
    _check_config(config, set_)
    rows = json or follow or all_ or last is not None or only is not None or not sys.stdout.isatty()
    scanned, sums = Scanned(), LogSummary(whole=not wanted.members)
    shown = _Rows(printer(json=json, silent=summary or unknown or not rows, lines=Lines()), _kinds(only), last)
    try:
        for event in filter(wanted.takes, _events(source, scanned, wanted, sums, follow=follow)):
            sums.add(event)
            shown.add(event)
    except KeyboardInterrupt:
        if not follow:
            raise
    shown.end()
    if unknown:
        show_unknown(scanned, json=json)
    elif summary:
        show_summary(sums, json=json)
    elif not json:
        show_answers(sums, rows=rows)
    say_what_was_read(scanned, unknown=unknown)
    say_zone(source.files, zone)
    if fail_on_expired or not follow:
        check_found(wanted, scanned)
    if fail_on_expired:
        _fail(scanned, sums)


def _period(since: str | None, until: str | None, zone: LocalZone) -> tuple[int | None, int | None]:
    """Return from when on and before when events are wanted, epoch ms; `None` for no bound."""
    from_ms, before_ms = _time(since, "--since", zone), _time(until, "--until", zone)
    zone.used = 0  # counts the times of the log that name no zone, not those of the options
    if from_ms is not None and before_ms is not None and from_ms >= before_ms:
        raise typer.BadParameter(f"{until} is not after --since {since}", param_hint="--until")
    return from_ms, before_ms


def _check_config(config: Path | None, set_: list[str] | None) -> None:
    """Raise what is wrong with a configuration that was named, though only a page and causes need one."""
    if config is not None or set_:
        load(config, set_)


class _Rows:
    """The events that are printed: those of some kinds, and only the last ones if that is requested."""

    def __init__(self, show: Callable[[ExplainedEvent], None], kinds: frozenset[str], last: int | None) -> None:
        self._show, self._kinds = show, kinds
        self._newest: deque[ExplainedEvent] | None = None if last is None else deque(maxlen=last)

    def add(self, event: ExplainedEvent) -> None:
        """Add an event, in the order of time."""
        if event.kind in self._kinds:
            (self._show if self._newest is None else self._newest.append)(event)

    def end(self) -> None:
        """Print the events that waited for the end."""
        for event in self._newest or ():
            self._show(event)


def _fail(scanned: Scanned, sums: LogSummary) -> None:
    """Exit with 1 if a member was removed, or if the log cannot show that none was."""
    if not scanned.coordinator_lines and not scanned.client_lines:
        raise HeartwheelError("no line of a group coordinator was read, so the log cannot show it", hint=_HINT)
    from heartwheel.wire.explained import KICKS

    if any(kind in KICKS for group in sums.groups() for kind in group.kicks):
        raise typer.Exit(1)
    if not scanned.coordinator_lines:
        words = "only consumers' own logs were read: they do not show whom a coordinator threw out"
        raise HeartwheelError(words, hint="name the brokers' logs too")


def _kinds(only: list[str] | None) -> frozenset[str]:
    """Return the wanted kinds of events."""
    from heartwheel.wire.explained import REASON_OF, Happened

    known = frozenset(kind.value for kind in Happened)
    names = frozenset(name.strip() for text in only or () for name in text.split(","))
    wrong = sorted(names - known - {_OUT})
    if wrong:
        words = f"{wrong[0]!r} is no kind of event: {_OUT}, {', '.join(sorted(known))}"
        raise typer.BadParameter(words, param_hint="--only")
    return (names - {_OUT}) | (frozenset(REASON_OF) if _OUT in names else frozenset()) if names else known


def _check_words(
    source: LogSource, on_page: Mapping[str, object], *, follow: bool, unknown: bool, page: bool, json: bool
) -> None:
    """Refuse words that do not go together."""
    if page and json:
        raise typer.BadParameter("it shows a page, and --json prints lines: give one of them", param_hint="--page")
    if not page and any(value is not None for value in on_page.values()):
        words = "--host, --port, --allow-host, --insecure and --open are about a page: add it"
        raise typer.BadParameter(words, param_hint="--page")
    if source.history is None:
        if not source.files:
            raise typer.BadParameter("name a broker's log, - for stdin, or a --history", param_hint="FILE..")
    elif source.files or follow:
        raise typer.BadParameter("a history is read in place of logs, and is not followed", param_hint="--history")
    elif unknown:
        raise typer.BadParameter("a history has no lines that were not understood", param_hint="--unknown")


def _events(
    source: LogSource, scanned: Scanned, wanted: Wanted, sums: LogSummary, *, follow: bool
) -> Iterator[ExplainedEvent]:
    """Yield the events, of which the summary is told what they do not show; for it the logs go on as long as this."""
    if follow:
        from heartwheel.front.cli.signals import stopped_by_signals

        sums.follows, over = True, threading.Event()
        with stopped_by_signals(over.set):
            for events in source.follow(scanned, lambda: not over.is_set(), wanted.noting(sums.returned)):
                yield from events
                if events:
                    sys.stdout.flush()
        sums.follows = False
        return
    with _progress(source.files) as advance:
        yield from source.explain(scanned, advance, wanted.noting(sums.returned))


def _time(text: str | None, option: str, zone: LocalZone) -> int | None:
    from heartwheel.sources.explain.asked_time import asked_time_ms

    try:
        return None if text is None else asked_time_ms(text, zone)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


@contextmanager
def _progress(files: Iterable[str]) -> Iterator[Callable[[int], None] | None]:
    """Show a bar while large files are read; it counts the bytes read, so a compressed file has no known end."""
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
    """Return the total size of files, bytes; `None` if the amount to read cannot be known."""
    if any(name == _STDIN or name.endswith(".gz") for name in names):
        return None
    try:
        return sum(Path(name).stat().st_size for name in names)
    except OSError as error:
        message = f"{error.filename} cannot be read: {error.strerror}"
        raise HeartwheelError(message, hint="name a broker's log") from error
