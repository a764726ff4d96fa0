"""`heartwheel explain`: why a broker's log says that a consumer was kicked, with no Kafka and no Spark."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.cli.audit_broker_log import parsed_zone
from heartwheel.cli.console import ConfigFile, SetFlags, load, stderr
from heartwheel.cli.explain_output import (
    printer,
    say_what_was_read,
    say_zone,
    show_summary,
    show_unknown,
    show_verdicts,
)
from heartwheel.cli.explain_page import show_page
from heartwheel.errors import HeartwheelError
from heartwheel.wall_clock import wall_ms

if TYPE_CHECKING:
    from heartwheel.explain.local_zone import LocalZone
    from heartwheel.explain.scan import Scanned
    from heartwheel.explain.wanted import Wanted
    from heartwheel.wire.explained import ExplainedEvent

_STDIN: Final = "-"
_HINT: Final = "the broker may log at WARN: kafka.coordinator.group and org.apache.kafka.coordinator.group need INFO"
_PROGRESS_FROM_BYTES: Final = 32 << 20
_EVENTS_AT_ONCE: Final = 1_000
_AGO: Final = re.compile(r"^(\d+)(s|m|min|h|d)$")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def explain(
    *,
    files: Annotated[list[str], typer.Argument(metavar="FILE..", help="Logs of brokers, also gzipped; - reads stdin.")],
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
    utc_offset: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE", help="The zone of times that name none: +01:00, or Europe/Berlin. Else they stay."
        ),
    ] = None,
    summary: Annotated[bool, typer.Option("--summary", help="A table of the groups, and no events.")] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Show what looks like a coordinator's line and is not understood.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the logs grow, until Ctrl-C.")] = False,
    fail_on_expired: Annotated[
        bool,
        typer.Option("--fail-on-expired", help="Exit with 1 if a coordinator threw a member out, or nothing was read."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Show it in a browser, until Ctrl-C.")] = False,
    host: Annotated[str | None, typer.Option(help="With --page: where to listen (dashboard.host).")] = None,
    port: Annotated[
        int | None, typer.Option(help="With --page: likewise; 0 takes any that is free (dashboard.port).")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="With --page: open it in a browser.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With --page: a name it may be asked under; can be repeated."),
    ] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="With --page: let others look without a login.")
    ] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
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
    from heartwheel.explain.local_zone import LocalZone
    from heartwheel.explain.scan import Scanned
    from heartwheel.explain.summary import Summary
    from heartwheel.explain.wanted import Wanted

    zone = LocalZone() if utc_offset is None else parsed_zone(utc_offset)
    times = _time(since, "--since", zone), _time(until, "--until", zone)
    zone.used = 0
    wanted = Wanted(group or (), member or (), *times)
    if page:
        asked = load(
            config,
            set_,
            dashboard__host=host,
            dashboard__port=port,
            dashboard__allow_hosts=",".join(allow_host) if allow_host else None,
            dashboard__insecure="true" if insecure else None,
        )
        show_page(files, wanted, zone, asked.settings, follow=follow, open_browser=open_)
        return
    scanned, sums, lines = Scanned(), Summary(), Lines()
    show = printer(json=json, silent=summary or unknown, lines=lines)
    kicked = False
    try:
        for event in _events(files, scanned, zone, follow=follow):
            if wanted.takes(event):
                sums.add(event)
                kicked |= event.kind in _kicks()
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
    say_what_was_read(scanned, unknown=unknown)
    say_zone(files, zone)
    _check(wanted, scanned, follow=follow)
    if fail_on_expired:
        _fail(scanned, kicked=kicked)


def _check(wanted: Wanted, scanned: Scanned, *, follow: bool) -> None:
    """Raise an error for a group or member that the whole of a log does not have."""
    is_read = scanned.coordinator_lines or scanned.client_lines
    missing = wanted.missing(scanned.groups) if is_read and not follow else None
    if missing is not None:
        raise missing


def _fail(scanned: Scanned, *, kicked: bool) -> None:
    """End with 1 if a member was thrown out, or if the log cannot show that none was."""
    if not scanned.coordinator_lines and not scanned.client_lines:
        raise HeartwheelError("no line of a group coordinator was read, so the log cannot show it", hint=_HINT)
    if kicked:
        raise typer.Exit(1)


def _kicks() -> frozenset[str]:
    from heartwheel.wire.explained import KICKS

    return KICKS


def _events(files: list[str], scanned: Scanned, zone: LocalZone, *, follow: bool) -> Iterator[ExplainedEvent]:
    from heartwheel.explain.run import explain_logs, follow_logs

    stdin = sys.stdin.buffer
    if follow:
        for events in follow_logs(files, scanned, stdin=stdin, zone=zone):
            yield from events
            if events:
                sys.stdout.flush()
        return
    with _progress(files) as advance:
        yield from explain_logs(files, scanned, stdin=stdin, zone=zone, progress=advance)


def _time(text: str | None, option: str, zone: LocalZone) -> int | None:
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
    if moment.tzinfo is not None:
        return int(moment.timestamp() * 1000)
    return zone.utc_ms(int(moment.replace(tzinfo=UTC).timestamp() * 1000))


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
