"""`heartwheel watch`: a service that keeps what brokers' logs say of consumer groups, and shows it, without Spark."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from heartwheel.base.phrases import count
from heartwheel.front.cli.console import ConfigFile, SetFlags, load, stderr, stdout
from heartwheel.front.cli.notify import keys_of, posting
from heartwheel.front.cli.options import AllowHostFlag, CausesFlag, HostFlag, PortFlag, ZoneFlag, listening
from heartwheel.settings import SettingProblem, Settings, SettingsError

if TYPE_CHECKING:
    from heartwheel.sources.explain.local_zone import LocalZone


def watch(
    *,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE..", help="Logs of brokers; else those of watch.files.")
    ] = None,
    kubernetes: Annotated[
        str | None,
        typer.Option(metavar="NS/SELECTOR", help="Logs of pods, by namespace and labels (watch.kubernetes)."),
    ] = None,
    docker: Annotated[
        str | None, typer.Option(metavar="NAME", help="Logs of containers, by names or label=value (watch.docker).")
    ] = None,
    history: Annotated[
        str | None, typer.Option(metavar="DB", help="The SQLite file of the history (watch.history_file).")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long the history is kept, such as 30d (watch.keep).")
    ] = None,
    causes: CausesFlag = None,
    utc_offset: ZoneFlag = None,
    host: HostFlag = None,
    port: PortFlag = None,
    allow_host: AllowHostFlag = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Let others in without a login (dashboard.insecure).")
    ] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Watch brokers' logs: keep who was removed from which consumer group and why, and show it, until SIGTERM.

    It needs no Spark, no topics and no change at brokers or clients. Logs are followed through rotations, and a restart
    loses and repeats nothing. The page, its login and TLS are set up in [dashboard]. docs/watch.md has the whole.

    For example:

        heartwheel watch /var/log/kafka/server.log

        heartwheel watch broker-*/server.log --history /var/lib/heartwheel/history.db --keep 30d --host 0.0.0.0

        heartwheel watch --kubernetes kafka/strimzi.io/kind=Kafka --history /data/history.db

        heartwheel watch --docker kafka-1,kafka-2

        heartwheel watch --config /etc/heartwheel.toml
    """
    settings = load(
        config,
        set_,
        watch__kubernetes=kubernetes,
        watch__docker=docker,
        watch__causes=",".join(causes) if causes else None,
        watch__history_file=history,
        watch__keep=keep,
        watch__utc_offset=utc_offset,
        **listening("dashboard", host=host, port=port, allow_host=allow_host, insecure=insecure),
    ).settings
    names, zone, keys = _checked(settings, files or [])
    from heartwheel.front.cli.dashboard import warn
    from heartwheel.front.cli.explain_output import say_zone
    from heartwheel.front.cli.run import log_to_stderr
    from heartwheel.front.cli.signals import stopped_by_signals
    from heartwheel.sources.watch.service import Watcher

    log_to_stderr()
    with contextlib.ExitStack() as stack:
        post = stack.enter_context(posting(settings, keys)) if settings.notify.url else None
        service = Watcher(settings, names, zone, post=post)
        stack.enter_context(stopped_by_signals(service.stop))
        stack.enter_context(service)
        stdout().print(Text(service.url, style="bold cyan"))
        into = settings.watch.history_file
        stderr().print(f"watching {_what(settings, names)} into {into}; Ctrl-C ends it")
        warn(settings.dashboard)
        zone.used += zone.is_assumed
        say_zone(names, zone)
        service.run()


def _what(settings: Settings, names: list[str]) -> str:
    """Return what is watched, in words."""
    pods = f"the pods {settings.watch.kubernetes}" if settings.watch.kubernetes else ""
    containers = f"the containers {settings.watch.docker}" if settings.watch.docker else ""
    return " and ".join(filter(None, (count(len(names), "log") if names else "", pods, containers)))


def _checked(settings: Settings, files: list[str]) -> tuple[list[str], LocalZone, tuple[bytes, ...]]:
    """Return the logs, the zone of their times and the keys of messages, or report all that is wrong at once."""
    from heartwheel.sources.explain.local_zone import LocalZone, parse_zone

    problems: list[SettingProblem] = []
    wanted, zone = settings.watch, LocalZone()
    names = files or [name.strip() for name in wanted.files.split(",") if name.strip()]
    if not (names or wanted.kubernetes or wanted.docker):
        problems.append(
            SettingProblem("watch.files", "names no log", hint="heartwheel watch /var/log/kafka/server.log")
        )
    try:
        zone = parse_zone(wanted.utc_offset) if wanted.utc_offset else zone
    except ValueError as error:
        problems.append(SettingProblem("watch.utc_offset", str(error)))
    keys: tuple[bytes, ...] = ()
    try:
        keys = keys_of(settings) if settings.notify.url else keys
    except SettingsError as error:
        problems += error.problems
    if problems:
        raise SettingsError(problems)
    return names, zone, keys
