"""The answers of `heartwheel explain`: groups without members, shared incidents, brokers, a verdict for each group."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import typer

from heartwheel.base.phrases import length, moment
from heartwheel.base.plain import plain
from heartwheel.front.cli.console import print_json_line, stdout

if TYPE_CHECKING:
    from heartwheel.sources.explain.summary import GroupSummary, LogSummary

_INDENT: Final = "  "
_CALM_MAX: Final = 12
_BROKERS_MAX: Final = 12
_GAP: Final = "  "


def show_answers(sums: LogSummary, *, rows: bool) -> None:
    """Print the state of each group and what happened to it: wrapped for a terminal, one line each in a pipe.

    Args:
        rows: whether rows were printed before.
    """
    from heartwheel.sources.explain.verdicts import judged

    groups = judged(sums)
    wide = not sys.stdout.isatty()
    if rows and (groups or sums.brokers):
        typer.echo("")
    for name, text in _answers(sums, groups):
        if wide:
            typer.echo(plain(f"{name}: {text}"))
        else:
            typer.secho(plain(name), bold=True)
            typer.echo(_wrapped(text))
    if not wide and not rows and groups:
        typer.echo("")
        typer.echo(_wrapped("The rows: --all, --last 20, --only expired, --group ID --all. In a browser: --page."))


def show_summary(sums: LogSummary, *, json: bool) -> None:
    """Print a table of the groups, or one JSON document a line."""
    import msgspec

    from heartwheel.sources.explain.verdicts import judged

    groups = judged(sums)
    if json:
        for group in groups:
            print_json_line(msgspec.structs.asdict(group) | {"kicks": group.kicks})
        return
    rows = [_row(group) for group in groups]
    # A column without a value for any group would push the others out of a narrow terminal.
    columns = [name for name in _HEADINGS if name in _ALWAYS or any(row[name] not in {"0", ""} for row in rows)]
    width = None if not sys.stdout.isatty() else stdout().width
    for line in _table([{name: row[name] for name in columns} for row in rows], columns, width):
        typer.echo(line)


_HEADINGS: Final = (
    "group", "now", "out", "polls", "pending", "left", "rebalances", "took", "longest", "storms", "worst",
)  # fmt: skip
_ALWAYS: Final = ("group", "now", "out", "rebalances")


def _row(group: GroupSummary) -> dict[str, str]:
    from heartwheel.wire.explained import Happened

    kicks = group.kicks
    polls, pending = kicks.pop(Happened.POLL_TIMEOUT, 0), kicks.pop(Happened.PENDING_EXPIRED, 0)
    worst = max(group.worst.items(), key=lambda each: each[1], default=None)
    return {
        "group": plain(group.group_id or "(not named)"),
        "now": "?" if group.members is None else str(group.members),
        "out": str(sum(kicks.values())),
        "polls": str(polls),
        "pending": str(pending),
        "left": str(group.leaves),
        "rebalances": str(group.rebalances) if group.whole else "?",
        "took": _known(group, group.rebalancing_ms),
        "longest": _known(group, group.longest_ms),
        "storms": str(group.storms),
        "worst": plain(f"{worst[0]} ({worst[1]})") if worst else "",
    }


def _known(group: GroupSummary, length_ms: int | None) -> str:
    """Return a length of rebalances; with a + if it does not count those of unknown length."""
    if not group.whole:
        return "?"
    if length_ms is None:
        return "not logged"
    return f"{length(length_ms)}{' +' if group.unmeasured else ''}"


def _table(rows: list[dict[str, str]], columns: list[str], width: int | None) -> Iterator[str]:
    """Yield rows below headings; the last columns are left out if they do not fit the terminal; words stay whole."""
    sizes = {name: max([len(name), *(len(row[name]) for row in rows)]) for name in columns}
    while width is not None and sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) > width:
        dropped = next((name for name in reversed(sizes) if name not in _ALWAYS), None)
        if dropped is None:
            break
        del sizes[dropped]
    for row in [{name: name for name in columns}, *rows]:
        cells = [
            row[name].ljust(size) if name in {"group", "worst"} else row[name].rjust(size)
            for name, size in sizes.items()
        ]
        yield _GAP.join(cells).rstrip()


def _answers(sums: LogSummary, groups: list[GroupSummary]) -> Iterator[tuple[str, str]]:
    """Yield the answers, each with the name before it."""
    running = [f"{group.group_id or '(not named)'} ({group.rebalancing})" for group in groups if group.rebalancing]
    if running:
        yield "Groups that still rebalance at the end of the log", f"{'; '.join(running)}."
    empty = [
        f"{group.group_id} (since {moment(group.empty_since_ms)})"
        for group in groups
        if group.empty_since_ms is not None
    ]
    unknown = [
        group.group_id
        for group in groups
        if group.members is None and group.kicked and group.from_coordinator and group.whole
    ]
    if empty or unknown:
        rest = f"; not known of: {_named(unknown)}" if unknown else ""
        yield "Groups without members at the end of the log", f"{', '.join(empty) or 'none'}{rest}."
    for incident in sums.incidents():
        yield f"Together at {moment(incident.from_ms)}", incident.words
    if sums.brokers:
        yield "Brokers", _brokers(sums)
    calm = [group.group_id for group in groups if group.is_calm and group.from_coordinator]
    untold = [group.group_id or "(not named)" for group in groups if group.is_calm and not group.from_coordinator]
    for group in groups:
        if not group.is_calm:
            yield group.group_id or "(group not named)", " ".join(group.verdict)
    if calm:
        yield "No member was thrown out", f"{_named(calm)}."
    if untold:
        yield "A consumer's own log tells of no removal", f"{_named(untold)}."


def _named(groups: list[str]) -> str:
    """Return the names of the first groups, and how many more there are."""
    more = f" and {len(groups) - _CALM_MAX} more" if len(groups) > _CALM_MAX else ""
    return f"{', '.join(groups[:_CALM_MAX])}{more}"


def _brokers(sums: LogSummary) -> str:
    from heartwheel.sources.explain.lines import what

    lines = [
        f"{moment(event.time_ms)} broker {event.broker_id}: {what(event)}" for event in sums.brokers[:_BROKERS_MAX]
    ]
    more = f"; and {len(sums.brokers) - _BROKERS_MAX} more" if len(sums.brokers) > _BROKERS_MAX else ""
    return f"{'; '.join(lines)}{more}."


def _wrapped(text: str) -> str:
    return textwrap.fill(
        plain(text),
        max(20, stdout().width),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
