"""`heartwheel gateway`: workers beat over HTTP, with curl if need be."""

from __future__ import annotations

import logging
import threading
from typing import Annotated

import typer

from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load, stderr, stdout
from heartwheel.front.cli.options import AllowHostFlag, HostFlag, PortFlag, listening
from heartwheel.front.cli.signals import serve_until, stopped_by_signals


def gateway(
    *,
    host: HostFlag = None,
    port: PortFlag = None,
    allow_host: AllowHostFlag = None,
    access_file: Annotated[
        str | None, typer.Option(metavar="PATH", help="Groups and their tokens (gateway.access_file).")
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Accept heartbeats from anyone, without a token (gateway.insecure)."),
    ] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Accept heartbeats of workers over HTTP and write them to Kafka, until SIGTERM or Ctrl-C.

    The answer is 202 once Kafka has acknowledged the heartbeat. Any other answer says what is wrong, and nothing is
    kept for later. By default it listens on this machine alone; where others can reach it, it needs a file of tokens:
    docs/feed.md.

    For example:

        heartwheel gateway --bootstrap-servers kafka:9092

        heartwheel gateway --host 0.0.0.0 --allow-host gateway --access-file tokens.txt
    """
    settings = load(
        config,
        set_,
        kafka__bootstrap_servers=bootstrap_servers,
        gateway__access_file=access_file,
        **listening("gateway", host=host, port=port, allow_host=allow_host, insecure=insecure),
    ).settings
    from heartwheel.front.cli.run import log_to_stderr
    from heartwheel.sources.gateway.gateway import Gateway

    log_to_stderr()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    stopping = threading.Event()
    with stopped_by_signals(stopping.set), Gateway(settings) as serving:
        stdout().print(serving.url)
        stderr().print(f"writes to {settings.kafka.bootstrap_servers}; Ctrl-C ends it")
        serve_until(stopping, serving, "the gateway")
