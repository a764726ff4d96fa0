"""The output of `heartwheel explain`: events, a summary of groups, and what was read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count, moment
from heartwheel.base.plain import plain
from heartwheel.front.cli.console import print_json_line, stderr
from heartwheel.front.cli.extras import require

if TYPE_CHECKING:
    from heartwheel.settings.servers import WatchSettings
    from heartwheel.sources.explain.causes.join import Causes
    from heartwheel.sources.explain.lines import Lines
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.explain.scan import Scanned
    from heartwheel.sources.explain.wanted import Wanted
    from heartwheel.wire.explained import ExplainedEvent


_ROTATED: Final = "a rotated log begins empty: name the one before it too"
_OTHERS: Final = {
    "broker": "no line of a group coordinator: this broker coordinates no group, or logs kafka.coordinator.group and "
    "org.apache.kafka.coordinator.group above INFO",
    "consumer": "a consumer's own log; the brokers' logs say what their coordinator decided",
}


def causes_of(names: Sequence[str] | None, zone: LocalZone, watch: Callable[[], WatchSettings]) -> Causes | None:
    """Return what happened to pods and machines, and print what of it could not be read.

    Args:
        names: of files, and of namespaces of Kubernetes, which are asked once.
        watch: loads the settings that say where the API of Kubernetes is.
    """
    if not names:
        return None
    from heartwheel.sources.explain.causes.join import Causes
    from heartwheel.sources.explain.causes.read import CauseFiles, places_of

    named, namespaces = places_of(names)
    files = CauseFiles(named, zone)
    happenings = files.read()
    files.check()
    doubts = files.doubts()
    if namespaces:
        require("page", "heartwheel explain --causes kubernetes:NAMESPACE")
        from heartwheel.sources.watch.containers.targets import opened_namespaces

        with contextlib.ExitStack() as stack:
            for each in opened_namespaces(namespaces, watch(), stack):
                happenings += each.read()
                doubts += each.doubts()
    for doubt in doubts:
        stderr().print(plain(doubt))
    return Causes(happenings)


def printer(*, json: bool, silent: bool, lines: Lines) -> Callable[[ExplainedEvent], None]:
    """Return a function that prints one event: as JSON, as lines, or not at all."""
    if silent:
        return lambda _event: None
    if json:
        import msgspec

        from heartwheel.base.plain import plain_json

        encode, out = msgspec.json.Encoder().encode, sys.stdout

        def write_line(event: ExplainedEvent) -> None:
            out.write(plain_json(encode(event).decode()) + "\n")

        return write_line

    def print_lines(event: ExplainedEvent) -> None:
        for line in lines.of(event):
            typer.echo(line)

    return print_lines


def show_unknown(scanned: Scanned, *, json: bool) -> None:
    """Print the shapes of the coordinator's unknown lines, the most frequent first."""
    for shape, number in scanned.unknown.most_common():
        text, file, line = scanned.unknown_example[shape]
        if json:
            print_json_line({"count": number, "text": text, "evidence": {"file": file, "line": line}})
        else:
            typer.echo(plain(f"{number:>8}  {file}:{line}  {text}"))


def say_what_was_read(scanned: Scanned, *, unknown: bool) -> None:
    """Print to stderr how much was read, and what that may not show."""
    from heartwheel.sources.explain.file_kind import CERTAIN

    say = stderr()
    for name, kind in scanned.others.items():
        known = kind if kind in CERTAIN else f"it seems to be {kind}"
        say.print(plain(f"{name}: {_OTHERS.get(kind, known)}"))
    if not scanned.coordinator_lines and not scanned.client_lines:
        return
    span = ""
    if scanned.first_ms is not None and scanned.last_ms is not None:
        zone = "" if scanned.zone_assumed else "Z"
        span = f", {moment(scanned.first_ms)}{zone} to {moment(scanned.last_ms)}{zone}"
    say.print(f"{count(scanned.lines, 'line')}, {scanned.coordinator_lines:,} of group coordinators{span}")
    if scanned.coarse:
        say.print("times of this log are by the second: every time and length is +-1 s")
    if scanned.untimed:
        say.print(f"{count(scanned.untimed, 'line')} without a time took that of the line before")
    if scanned.too_long:
        say.print(f"{count(scanned.too_long, 'line')} of more than 64 MiB left out")
    for doubt in scanned.doubts():
        say.print(plain(doubt), soft_wrap=True)
    if scanned.unknown_lines and not unknown:
        number = count(scanned.unknown_lines, "line")
        say.print(f"not understood: {number} of coordinators (--unknown shows which)")


def check_found(wanted: Wanted, scanned: Scanned) -> None:
    """Raise an error if the log has nothing about the requested group, member or time, or if no log was read."""
    from heartwheel.sources.explain.file_kind import EMPTY, EVENTS, NO_LOGS

    if scanned.coordinator_lines or scanned.client_lines:
        missing = wanted.missing(scanned.groups, scanned.first_ms, scanned.last_ms)
        if missing is not None:
            raise missing
        return
    if not NO_LOGS.issuperset(scanned.others.values()):
        return
    if all(kind == EMPTY for kind in scanned.others.values()):
        raise HeartwheelError(f"nothing was read: {', '.join(scanned.others)} is empty", hint=_ROTATED)
    events = [name for name, kind in scanned.others.items() if kind == EVENTS]
    hint = f"heartwheel replay {events[0]} reads events" if events else "name a broker's log, such as server.log"
    raise HeartwheelError("no line of a broker's or a consumer's log was read", hint=hint)


def say_zone(files: Sequence[str], zone: LocalZone) -> None:
    """Print to stderr the zone of times, if the log does not name it, and a warning if it is probably another one."""
    from heartwheel.base.wall_clock import wall_ms
    from heartwheel.sources.explain.clock_check import zone_doubt

    if not zone.used:
        return
    say = stderr()
    if zone.is_assumed:
        words = (
            "times without Z are as the log has them, which names no zone; say which it is to have them in UTC, "
            "such as --utc-offset Europe/Berlin"
        )
        say.print(words)
    for name in files:
        doubt = zone_doubt(name, zone, now_ms=wall_ms())
        if doubt:
            say.print(Text.assemble(("warning: ", "bold yellow"), plain(doubt)))
