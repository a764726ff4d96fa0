"""`heartwheel mcp`: answers for language models, over stdio or HTTP."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.audit_broker_log import parsed_zone
from heartwheel.front.cli.console import ConfigFile, SetFlags, load, stderr, stdout
from heartwheel.front.cli.options import AllowHostFlag, HistoryFlag, HostFlag, PortFlag, ZoneFlag

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from heartwheel.settings import Settings
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.mcp_server.questions import Questions


def mcp(
    *,
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE..", help="Logs of brokers, also gzipped.")] = None,
    history: HistoryFlag = None,
    dashboard: Annotated[
        str | None, typer.Option(metavar="URL", help="A heartwheel dashboard or watch, in place of logs.")
    ] = None,
    utc_offset: ZoneFlag = None,
    http: Annotated[bool, typer.Option("--http", help="Serve over streamable HTTP, and not over stdio.")] = False,
    host: HostFlag = None,
    port: PortFlag = None,
    allow_host: AllowHostFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Answer the questions of a language model by the Model Context Protocol: who was kicked, why, and who is next.

    It reads what is named here and nothing else, and changes nothing. Answers have the line of the log that shows them,
    how certain they are, and what is not known; ids of clients are marked as texts that are not to be trusted.
    docs/mcp.md shows how to enter it in a client.

    For example:

        heartwheel mcp /var/log/kafka/server.log

        heartwheel mcp --history /var/lib/heartwheel/history.db

        heartwheel mcp --dashboard http://127.0.0.1:8484 --http --port 8488
    """
    settings = load(
        config,
        set_,
        mcp__host=host,
        mcp__port=port,
        mcp__allow_hosts=",".join(allow_host) if allow_host else None,
    ).settings
    from heartwheel.front.cli.run import log_to_stderr
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.sources.mcp_server.tools import server_of

    zone = LocalZone() if utc_offset is None else parsed_zone(utc_offset)
    questions = _questions(files or [], history, dashboard, zone, settings)
    log_to_stderr()
    server = server_of(questions, zone)
    if http:
        _serve(server, settings)
    else:
        server.run("stdio")


def _questions(
    files: list[str], history: Path | None, dashboard: str | None, zone: LocalZone, settings: Settings
) -> Questions:
    """Return what answers, or refuse words that do not go together."""
    if (bool(files), history is not None, dashboard is not None).count(True) != 1:
        raise typer.BadParameter("name brokers' logs, a --history or a --dashboard: one of them", param_hint="FILE..")
    if dashboard is not None:
        from heartwheel.sources.mcp_server.dashboard_answers import DashboardAnswers
        from heartwheel.sources.mcp_server.dashboard_client import DashboardClient

        return DashboardAnswers(DashboardClient(dashboard, settings.mcp.dashboard_token))
    from heartwheel.sources.mcp_server.log_answers import LogAnswers
    from heartwheel.sources.watch.history_file import HistoryFile
    from heartwheel.sources.watch.log_source import LogSource

    if "-" in files:
        raise typer.BadParameter("stdin has the client's requests; name a file", param_hint="FILE..")
    if history is not None:
        with HistoryFile(history, writes=False):
            pass  # what is no history is refused now, not when a client asks
    for name in files:
        if not Path(name).is_file():
            raise HeartwheelError(f"{name} is no file", hint="name a broker's log, or a --history of heartwheel watch")
    return LogAnswers(LogSource(files, history, None, zone))


def _serve(server: MCPServer, settings: Settings) -> None:
    """Serve over HTTP until SIGTERM or Ctrl-C."""
    import logging

    from heartwheel.front.cli.signals import serve_until, stopped_by_signals
    from heartwheel.sources.mcp_server.http import McpOverHttp

    logging.getLogger("mcp").setLevel(logging.WARNING)
    stopping = threading.Event()
    with stopped_by_signals(stopping.set), McpOverHttp(server, settings.mcp) as serving:
        stdout().print(serving.url)
        stderr().print("answers the Model Context Protocol; Ctrl-C ends it")
        serve_until(stopping, serving, "the server")
