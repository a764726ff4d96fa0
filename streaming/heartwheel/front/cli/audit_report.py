"""The report of `heartwheel audit`, as it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from heartwheel.base.phrases import count
from heartwheel.front.cli.console import figures_table, plain_table, print_json, stderr, stdout

if TYPE_CHECKING:
    from heartwheel.proof.audit import Report

_FIGURES: Final = (
    "clock_ms",
    "events",
    "ticks",
    "outages",
    "derived",
    "written",
    "confirmed",
    "repeated",
    "pending",
    "unjudged",
    "unsettled",
)


def show_report(report: Report, *, as_json: bool) -> None:
    """Print a report: as JSON, or its figures, its faults and the first findings as tables."""
    from msgspec import to_builtins

    if as_json:
        print_json(to_builtins(report))
        return
    from heartwheel.proof.audit.findings import MEANINGS

    stdout().print(figures_table("judged", {name: getattr(report, name) for name in _FIGURES}, justify="right"))
    if report.faults:
        stdout().print()
        faults = plain_table("faults", "", "")
        for kind, count in report.faults.items():
            faults.add_row(kind.value, str(count), MEANINGS[kind])
        stdout().print(faults)
        stdout().print()
        found = plain_table("finding", "where", "group", "member", "time_ms", "what")
        for one in report.findings:
            about = (one.group_id or "", one.member_id or "", str(one.time_ms or ""))
            found.add_row(one.kind.value, one.place(), *about, one.detail)
        stdout().print(found)
    _warn(report)


def _warn(report: Report) -> None:
    if report.unread:
        words = f"{count(report.unread, 'record')} not read, too large to unpack; the job's report on them is trusted"
        stderr().print(words)
    if report.skipped:
        stderr().print(f"{count(report.skipped, 'record')} left out, because heartwheel skip told the job to")
    if report.ok:
        nothing = "nothing was derived" if not report.derived else "everything that was written is what the log says"
        stderr().print(f"clean: {nothing}")
