"""Options that several commands have: durations, brokers' logs, and where a command's pages or its gateway listen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heartwheel.settings import parse_duration_ms


def parsed_duration(text: str) -> int:
    """Return the duration that an option names, ms; the parser of such options.

    Raises:
        typer.BadParameter: it is none.
    """
    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


LogFiles = Annotated[
    list[str] | None, typer.Argument(metavar="FILE..", help="Logs of brokers, also gzipped; - reads stdin.")
]
"""The argument for the logs that a command reads."""

HistoryFlag = Annotated[
    Path | None, typer.Option("--history", metavar="DB", help="What heartwheel watch has kept, in place of logs.")
]
"""The option for a history in their place."""

ZoneFlag = Annotated[
    str | None,
    typer.Option("--utc-offset", metavar="ZONE", help="The zone of times that name none: +01:00, or Europe/Berlin."),
]
"""The option for the zone of logs."""

CausesFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--causes",
        metavar="FILE",
        help="What happened to pods and machines; kubernetes:NAMESPACE asks the API. Can be repeated.",
    ),
]
"""The option for files with what may have caused removals."""

HostFlag = Annotated[
    str | None, typer.Option("--host", help="Where to serve, such as 0.0.0.0; else for this machine alone.")
]
"""The option for the address to listen on; `host` in the command's section of the configuration."""

PortFlag = Annotated[int | None, typer.Option("--port", help="The port to serve on; 0 takes any that is free.")]
"""The option for the port; `port` likewise."""

AllowHostFlag = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A host name that requests may use; can be repeated."),
]
"""The option for the names it may be asked under; `allow_hosts` likewise."""


def listening(
    section: str, *, host: str | None, port: int | None, allow_host: list[str] | None, insecure: bool | None
) -> dict[str, str | int | None]:
    """Return what these options set, by path as `console.load` takes it.

    Args:
        section: the command's section of the configuration, `dashboard` or `gateway`.
        host: of `HostFlag`.
        port: of `PortFlag`.
        allow_host: of `AllowHostFlag`.
        insecure: whether anybody may use it who reaches it.
    """
    return {
        f"{section}__host": host,
        f"{section}__port": port,
        f"{section}__allow_hosts": ",".join(allow_host) if allow_host else None,
        f"{section}__insecure": "true" if insecure else None,
    }
