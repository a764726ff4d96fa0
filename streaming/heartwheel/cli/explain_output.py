"""What `heartwheel explain` prints: events, a summary of groups, and what was read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from heartwheel.cli.console import plain_table, stderr, stdout
from heartwheel.plain import plain

if TYPE_CHECKING:
    from heartwheel.explain.local_zone import LocalZone
    from heartwheel.explain.scan import Scanned
    from heartwheel.explain.summary import GroupSummary, Summary
    from heartwheel.wire.explained import ExplainedEvent


_OTHERS: Final = {
    "broker": "no line of a group coordinator: this broker coordinates no group, or logs kafka.coordinator.group and "
    "org.apache.kafka.coordinator.group above INFO",
    "consumer": "a consumer's own log; the brokers' logs say what their coordinator decided",
}


def printer(*, json: bool, silent: bool, lines: object) -> Callable[[ExplainedEvent], None]:
    """Return what prints one event: as JSON, as lines, or not at all."""
    from heartwheel.explain.lines import Lines

    assert isinstance(lines, Lines)  # noqa: S101 - imported late, so that `--help` is quick
    if silent:
        return lambda _event: None
    if json:
        import msgspec

        from heartwheel.plain import plain_json

        encode, out = msgspec.json.Encoder().encode, sys.stdout

        def print_json_line(event: ExplainedEvent) -> None:
            out.write(plain_json(encode(event).decode()) + "\n")

        return print_json_line

    def print_lines(event: ExplainedEvent) -> None:
        for line in lines.of(event):
            typer.echo(line)

    return print_lines


def show_verdicts(sums: Summary) -> None:
    """Print in a sentence or two what became of each group."""
    groups = sums.groups()
    if groups:
        typer.echo("")
    for group in groups:
        typer.echo(plain(f"{group.group_id or '(group not named)'}: {' '.join(group.verdict)}"))


def show_summary(sums: Summary, *, json: bool) -> None:
    """Print a table of the groups, or one JSON document a line."""
    from heartwheel.plain import plain_json

    groups = sums.groups()
    if json:
        import msgspec

        for group in groups:
            typer.echo(plain_json(msgspec.json.encode(group).decode()))
        return
    table = plain_table(
        "group",
        "thrown out",
        "poll timeouts",
        "pending",
        "left",
        "rebalances",
        "rebalancing",
        "longest",
        "storms",
        "worst",
    )
    for group in groups:
        kicks = dict(group.kicks)
        polls, pending = kicks.pop("poll_timeout", 0), kicks.pop("pending_expired", 0)
        causes = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in sorted(kicks.items()))
        worst = max(group.worst.items(), key=lambda each: each[1], default=None)
        table.add_row(
            plain(group.group_id or "(not named)"),
            causes or "0",
            str(polls),
            str(pending),
            str(group.leaves),
            str(group.rebalances),
            *_lengths(group),
            str(group.storms),
            plain(f"{worst[0]} ({worst[1]})") if worst else "",
        )
    stdout().print(table, markup=False)


def _lengths(group: GroupSummary) -> tuple[str, str]:
    """Write how long rebalances took; groups of the newer types do not say so."""
    from heartwheel.live.phrases import length

    if group.rebalancing_ms == 0 and group.group_type not in {"classic", ""}:
        return "not logged", "not logged"
    return length(group.rebalancing_ms), length(group.longest_ms)


def show_unknown(scanned: Scanned, *, json: bool) -> None:
    """Print the shapes of the coordinator's lines that are not known, the most frequent first."""
    from heartwheel.plain import plain_json

    for shape, number in scanned.unknown.most_common():
        text, file, line = scanned.unknown_example[shape]
        if json:
            import msgspec

            row = {"count": number, "text": text, "evidence": {"file": file, "line": line}}
            typer.echo(plain_json(msgspec.json.encode(row).decode()))
        else:
            typer.echo(plain(f"{number:>8}  {file}:{line}  {text}"))


def say_what_was_read(scanned: Scanned, *, unknown: bool) -> None:
    """Say on stderr how much was read, and what that may not show."""
    say = stderr()
    for name, kind in scanned.others.items():
        say.print(plain(f"{name}: {_OTHERS.get(kind) or f'it seems to be {kind}'}"), markup=False)
    if not scanned.coordinator_lines and not scanned.client_lines:
        return
    span = ""
    if scanned.first_ms is not None and scanned.last_ms is not None:
        span = f", {_iso(scanned.first_ms)} to {_iso(scanned.last_ms)}"
    say.print(f"{scanned.lines:,} lines, {scanned.coordinator_lines:,} of group coordinators{span}", markup=False)
    if scanned.coarse:
        say.print("times of this log are by the second: every time and length is +-1 s", markup=False)
    if scanned.untimed:
        say.print(f"{scanned.untimed:,} lines without a time: they took that of the line before", markup=False)
    if scanned.too_long:
        say.print(f"{scanned.too_long:,} lines over 64 MiB were left out", markup=False)
    if scanned.unknown_lines and not unknown:
        say.print(
            f"{scanned.unknown_lines:,} lines of coordinators were not understood: --unknown shows them", markup=False
        )


def say_zone(files: list[str], zone: LocalZone) -> None:
    """Say on stderr in which zone times are, where the log does not, and if that is probably another one."""
    from heartwheel.explain.clock_check import zone_doubt
    from heartwheel.wall_clock import wall_ms

    if not zone.used:
        return
    say = stderr()
    if zone.is_assumed:
        words = (
            "times without Z are as the log has them, which names no zone: --utc-offset Europe/Berlin makes them UTC"
        )
        say.print(words, markup=False)
    for name in files:
        doubt = zone_doubt(name, zone, now_ms=wall_ms())
        if doubt:
            say.print(Text.assemble(("warning: ", "bold yellow"), plain(doubt)))


def _iso(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
