"""`heartwheel dashboard`: expired members and why, the state of the engine, and the members at risk, in a browser."""

from __future__ import annotations

import logging
import threading
from typing import Annotated

import typer
from rich.text import Text

from heartwheel.base.addresses import is_loopback
from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load, stderr, stdout
from heartwheel.front.cli.options import AllowHostFlag, HostFlag, PortFlag, listening
from heartwheel.front.cli.signals import serve_until, stopped_by_signals
from heartwheel.settings import DashboardSettings


def dashboard(
    *,
    host: HostFlag = None,
    port: PortFlag = None,
    canary: Annotated[
        bool | None,
        typer.Option("--canary/--no-canary", help="Send members that fall silent on schedule (canary.enabled)."),
    ] = None,
    allow_host: AllowHostFlag = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Let others in without a login (dashboard.insecure)."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Show who was expired, when and why, whether the engine can be trusted, and who is next, in a browser.

    It follows the topics that `heartwheel run` writes, and only reads, unless the canary is on. It starts without Kafka
    and without a job, and reports that. Where others can reach it, it must require a login: docs/dashboard.md.

    For example:

        heartwheel dashboard --bootstrap-servers kafka:9092

        heartwheel dashboard --port 0 --open

        heartwheel dashboard --host 0.0.0.0 --allow-host dash.example.org --set dashboard.users_file=users.htpasswd
    """
    settings = load(
        config,
        set_,
        kafka__bootstrap_servers=bootstrap_servers,
        canary__enabled=None if canary is None else str(canary).lower(),
        **listening("dashboard", host=host, port=port, allow_host=allow_host, insecure=insecure),
    ).settings
    log_access(settings.dashboard)
    # The Kafka client logs at length that a broker is away; the page says it in one sentence.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    from heartwheel.readers.dashboard.dashboard import Dashboard

    stopping = threading.Event()
    with stopped_by_signals(stopping.set), Dashboard(settings) as shown:
        stdout().print(Text(shown.url, style="bold cyan"))
        stderr().print(f"following {settings.kafka.bootstrap_servers}; Ctrl-C ends it")
        warn(settings.dashboard)
        if open_:
            typer.launch(shown.url)
        serve_until(stopping, shown, "the dashboard")


def log_access(wanted: DashboardSettings) -> None:
    """Log to stderr, including who requested what if that is configured."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)-7s %(message)s")
    if wanted.access_log:
        logging.getLogger("heartwheel.readers.dashboard.access").setLevel(logging.INFO)


def warn(wanted: DashboardSettings) -> None:
    """Print warnings about a dashboard that others can reach."""
    for line in _warnings(wanted):
        stderr().print(line)


def _warnings(wanted: DashboardSettings) -> list[str]:
    if is_loopback(wanted.host):
        return []
    if not (wanted.users_file or wanted.token or wanted.user_header):
        return [f"others can reach it on {wanted.host}: it only reads, but asks for no login"]
    if not (wanted.tls_certificate or wanted.trusted_proxies):
        return [
            "passwords and tokens travel in clear: set dashboard.tls_certificate, or put a proxy with TLS before it"
        ]
    return []
