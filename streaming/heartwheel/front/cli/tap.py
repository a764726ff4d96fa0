"""`heartwheel tap`: relay what real groups send to a broker, from its request log into the heartbeat topic."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heartwheel.base.phrases import count
from heartwheel.base.wall_clock import wall_ms
from heartwheel.base.worker import Worker
from heartwheel.front.cli.audit_broker_log import parsed_zone
from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load, stderr
from heartwheel.front.cli.signals import stopped_by_signals

if TYPE_CHECKING:
    from heartwheel.sources.tap.echo import Echo
    from heartwheel.sources.tap.plan import TapFigures
    from heartwheel.sources.tap.tap import Tap

_SAY_EVERY_S: Final = 10.0
_LOOK_S: Final = 0.5


def tap(
    *,
    request_log: Annotated[
        Path, typer.Argument(metavar="LOG", help="The file of the broker's logger kafka.request.logger.")
    ],
    broker_log: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="The broker's own log: it resolves doubts at once, and shows loads."),
    ] = None,
    feed: Annotated[
        str, typer.Option(metavar="NAME", help="The tap's name in the job's settings (engine.feeds).")
    ] = "tap",
    positions: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the tap's position; one per tap.")
    ] = Path("heartwheel-tap"),
    broker_id: Annotated[
        int | None, typer.Option(metavar="ID", help="The broker of the log: small requests to it make time pass.")
    ] = None,
    tapped: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="That broker's cluster, if the topics are in another one.")
    ] = None,
    from_begin: Annotated[
        bool, typer.Option("--from-begin", help="A new tap starts at the start of the log, not at its end.")
    ] = False,
    utc_offset: Annotated[
        str, typer.Option(metavar="ZONE", help="The zone of log times that name none: +01:00, for example.")
    ] = "+00:00",
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Relay what real groups send to a broker, until SIGTERM or Ctrl-C: heartbeats, joins, syncs, leaves, commits.

    The broker's request logger must be at DEBUG, which costs it CPU and a kilobyte of log or more for each request, not
    for heartbeats alone: docs/tap.md says how much, and how to switch it on and off at run time. The job must trust the
    feed (engine.feeds). One tap reads one broker; each has a feed and a folder of its own.

    For example:

        heartwheel tap /var/log/kafka/kafka-request.log --broker-log /var/log/kafka/server.log --broker-id 1

        heartwheel tap kafka-request.log --feed broker-2 --broker-id 2 --positions /var/lib/heartwheel/broker-2
    """
    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    from heartwheel.sources.tap.echo import Echo
    from heartwheel.sources.tap.plan import TapPlan, require_trusted
    from heartwheel.sources.tap.tap import Tap

    require_trusted(settings, feed)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    plan = TapPlan(
        feed=feed,
        request_log=request_log,
        positions=positions,
        broker_log=broker_log,
        zone=parsed_zone(utc_offset),
        from_begin=from_begin,
    )
    running = Tap(settings, plan, report=lambda words: stderr().print(words))
    with contextlib.ExitStack() as stack:
        echo = None
        if broker_id is not None:
            cluster = tapped or settings.kafka.bootstrap_servers
            echo = stack.enter_context(Echo(cluster, broker_id, properties=settings.kafka.client, token=running.token))
        else:
            stderr().print("no --broker-id: while no client sends the broker a request, no time passes")
            guess = "no --broker-id: session timeouts of consumer, share and streams groups are those of [coordinator]"
            stderr().print(guess)
        if broker_log is None:
            doubt = "no --broker-log: a member that joins again on its own, while all others of its group are silent,"
            stderr().print(f"{doubt} may be expired although its join waits; docs/tap.md says when")
        stack.enter_context(stopped_by_signals(running.stop))
        stack.enter_context(_saying(running, echo, settings.coordinator.model_dump()))
        running.run()


@contextlib.contextmanager
def _saying(running: Tap, echo: Echo | None, coordinator: Mapping[str, Any]) -> Iterator[None]:
    """Print the tap's figures periodically, and at once any setting of the broker that differs from the job's."""
    worker = Worker(lambda: _say(running, echo, coordinator, worker), "tap-says", close_s=1)
    try:
        with worker:
            yield
    finally:
        stderr().print(said_of(running.figures))


def _say(running: Tap, echo: Echo | None, coordinator: Mapping[str, Any], worker: Worker) -> None:
    from heartwheel.sources.tap.broker_rules import differences

    said_s, warned, different = time.monotonic(), "", list[str]()
    while not worker.wait(_LOOK_S):
        found = [] if echo is None else differences(coordinator, echo.rules)
        for words in found if found != different else ():
            stderr().print(f"{words}: verdicts would follow other rules than Kafka's")
        different = found
        warning = "" if echo is None else warning_of(echo.level, echo.trouble)
        if warning != warned and warning:
            stderr().print(warning)
        warned = warning
        if time.monotonic() - said_s >= _SAY_EVERY_S:
            said_s = time.monotonic()
            stderr().print(said_of(running.figures))


def warning_of(level: str, trouble: str) -> str:
    """Return what is wrong with the tapped broker, empty if nothing is.

    Args:
        level: of its request logger.
        trouble: why the last request failed.
    """
    if trouble:
        return f"the tapped broker does not answer: {trouble}"
    if level and level not in {"DEBUG", "TRACE"}:
        return f"the broker's request logger is at {level}, so nothing comes: {SWITCH_ON}"
    return ""


SWITCH_ON: Final = (
    "kafka-configs.sh --alter --entity-type broker-loggers --entity-name ID --add-config kafka.request.logger=DEBUG"
)
"""How to switch the request logger on at run time (KIP-412)."""


def said_of(figures: TapFigures) -> str:
    """Return in one line what a tap has done."""
    behind = "" if figures.passed_ms < 0 else f", {(wall_ms() - figures.passed_ms) / 1000:.1f} s behind the clock"
    parts = [f"{count(figures.lines, 'line')}, {count(figures.relayed, 'event')} passed on{behind}"]
    parts += [f"{count(figures.held, 'group')} held back"] if figures.held else []
    parts += [f"{figures.skipped:,} already there"] if figures.skipped else []
    parts += [f"{count(figures.unreadable, 'line')} unreadable"] if figures.unreadable else []
    parts += [f"{count(figures.too_large, 'request')} too large to pass on"] if figures.too_large else []
    parts += [f"{count(figures.failed, 'line')} that could not be handled"] if figures.failed else []
    parts += [f"{count(figures.left_out, 'line')} left out that a client may have written"] if figures.left_out else []
    parts += [f"{count(figures.distrusted, 'line')} of the broker's own log not believed"] if figures.distrusted else []
    parts += [f"{count(figures.refused, 'record')} refused by Kafka"] if figures.refused else []
    parts += [count(figures.gaps, "gap")] if figures.gaps else []
    return ", ".join(parts)
