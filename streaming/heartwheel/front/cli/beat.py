"""`heartwheel beat`: start a worker, beat for it while it lives, and report how it ended."""

from __future__ import annotations

from typing import Annotated

import typer

from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load
from heartwheel.front.cli.extras import require


def beat(
    *,
    worker: Annotated[list[str], typer.Argument(help="Its program and arguments.", metavar="WORKER...")],
    group: Annotated[str, typer.Option(help="The group, such as the name of a service.")],
    member: Annotated[
        str | None, typer.Option(help="The member's id; the default is HOST-PROGRAM, or HOST-PROGRAM-2.")
    ] = None,
    session: Annotated[
        str, typer.Option(metavar="TIME", help="How long the member may be silent until it expires.")
    ] = "30s",
    to: Annotated[
        str | None,
        typer.Option("--to", "--url", metavar="URL", help="A gateway; else $HEARTWHEEL_BEATS_TO, else Kafka."),
    ] = None,
    alive_file: Annotated[
        str | None, typer.Option(metavar="PATH", help="Beat only while the worker touches it once a session.")
    ] = None,
    tcp: Annotated[
        int | None, typer.Option(metavar="PORT", help="Beat only while this port takes connections.")
    ] = None,
    check: Annotated[
        str | None, typer.Option(metavar="CMD", help="Beat only while this command ends with 0; no shell.")
    ] = None,
    start_timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long it may take until the checks pass for the first time.")
    ] = "5m",
    ok_exit: Annotated[
        str, typer.Option(metavar="CODES", help="Exit codes that are no failure, separated by commas.")
    ] = "0",
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="The worker is a job: how often it runs, such as 24h.")
    ] = None,
    grace: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --every: how much later it may be done (1h).")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="TIME", help="How long the worker may run at most.")] = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Start a worker, beat for it while it lives, and report how it ended.

    Signals and the exit code are passed on, and as PID 1 it reaps orphaned processes. A worker has failed if its exit
    code is not 0, if a signal kills it that was not sent through this command, or if a check fails. A failure is an
    expiration: the page shows it, and `heartwheel notify` posts it. A worker that hangs is noticed only with
    `--alive-file`, `--tcp` or `--check`. Beats go to a gateway, or to Kafka, depending on the configuration. A duration
    needs its unit: 10s, 5m, 24h. A worker that is started again has the same member id.

    For example:

        heartwheel beat --group orders --bootstrap-servers kafka:9092 -- ./worker fast

        heartwheel beat --group orders --url http://gateway:8486 --tcp 8080 -- ./worker

        heartwheel beat --group backup --url http://gateway:8486 --every 24h --grace 1h -- ./backup.sh
    """
    import os

    from heartwheel.front.beats import BeatsError, KafkaSender
    from heartwheel.front.beats.command import beat_for
    from heartwheel.kafka.security import client_settings

    sender = None
    if not (to or os.environ.get("HEARTWHEEL_BEATS_TO")):
        require("kafka", "heartwheel beat to Kafka")
        kafka = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings.kafka
        sender = KafkaSender(kafka.bootstrap_servers, kafka.topics.heartbeats, settings=client_settings(kafka.client))
    try:
        code = beat_for(
            worker,
            group=group,
            member=member,
            session=session,
            to=to,
            sender=sender,
            alive_file=alive_file,
            tcp=tcp,
            check=check,
            start_timeout=start_timeout,
            ok_exit=ok_exit,
            every=every,
            grace=grace,
            limit=limit,
        )
    except (BeatsError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    raise typer.Exit(code)
