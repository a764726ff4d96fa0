"""`heartwheel advise`: which settings would have prevented what in each group, from brokers' logs or a history."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain
from heartwheel.front.cli.console import AsJson, print_json_line
from heartwheel.front.cli.options import HistoryFlag, LogFiles


def advise(
    *,
    files: LogFiles = None,
    history: HistoryFlag = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this group, or those of a pattern; can be repeated.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Advise settings: how many removals and how much stopped work each would have prevented, and what it costs.

    Timeouts, static membership and the new protocol, for each group, with the number of cases. It says only what the
    logs show: of a member that did not come back, no timeout is known that would have been enough. Whether another
    heartbeat.interval.ms would have helped is in no log; heartwheel replay tries that on recorded requests.

    For example:

        heartwheel advise /var/log/kafka/server.log

        heartwheel advise --history /var/lib/heartwheel/history.db --group 'pay*' --json
    """
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.explain.scanned import Scanned
    from heartwheel.sources.explain.wanted import Wanted
    from heartwheel.sources.watch.advice import Advice
    from heartwheel.sources.watch.log_source import LogSource

    if bool(files) == (history is not None):
        raise typer.BadParameter("name brokers' logs, - for stdin, or a --history", param_hint="FILE..")
    scanned, wanted, advice = Scanned(), Wanted(group or ()), Advice()
    for event in filter(wanted.takes, LogSource(files or [], history, sys.stdin.buffer, LocalZone()).explain(scanned)):
        advice.add(event)
    if not scanned.coordinator_lines:
        raise HeartwheelError("no line of a group coordinator was read", hint="name a broker's log, such as server.log")
    missing = wanted.missing(scanned.groups, scanned.first_ms, scanned.last_ms)
    if missing is not None:
        raise missing
    groups = advice.groups()
    if json:
        for each in groups:
            print_json_line(each)
        return
    for each in groups:
        typer.secho(plain(each.group_id), bold=True)
        for one in each.settings:
            typer.echo(plain(f"  {one.words}"))
    if not groups:
        typer.echo("The logs show nothing that another setting would have prevented.")
