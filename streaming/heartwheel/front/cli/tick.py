"""`heartwheel tick`: ticks for a topic, until SIGTERM."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, SetFlags, load, stderr
from heartwheel.front.cli.options import parsed_duration
from heartwheel.front.cli.signals import stopped_by_signals
from heartwheel.settings import format_duration

if TYPE_CHECKING:
    from heartwheel.engine.runtime.driver.ticker import Ticker
    from heartwheel.wire.job import TickerState

_LOOK_S: Final = 0.5
_EVERY_MIN_MS: Final = 50
_EVERY_MAX_MS: Final = 60_000


def _interval(text: str) -> int:
    interval_ms = parsed_duration(text)
    if not _EVERY_MIN_MS <= interval_ms <= _EVERY_MAX_MS:
        bounds = f"{format_duration(_EVERY_MIN_MS)} to {format_duration(_EVERY_MAX_MS)}"
        raise typer.BadParameter(f"{text} is not within {bounds}")
    return interval_ms


def tick(
    *,
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC", help="The topic; it must exist.")],
    every: Annotated[
        int, typer.Option(parser=_interval, metavar="TIME", help="From one tick to the next, 50ms to 1m.")
    ] = "1s",  # type: ignore[assignment]  # Typer parses the default, too
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Write a tick to every partition of a topic, again and again, until SIGTERM or Ctrl-C.

    A tick is a small record with a time and without a key. With it, `heartwheel.sessions` knows that a partition which
    brings no events is quiet and not late: sessions(..., ticks=tick.is_tick("value")). Other readers of the topic must
    skip ticks: their value is a JSON object whose `type` is `tick`. The job of `heartwheel run` needs none of this, as
    it writes ticks itself. Where a tick cannot be written, a line says why, and the command goes on trying.

    For example:

        heartwheel tick --topic device-events

        heartwheel tick --topic device-events --every 500ms --bootstrap-servers kafka:9092
    """
    from heartwheel.engine.runtime.driver.ticker import Ticker, new_run

    settings = load(config, set_, kafka__bootstrap_servers=bootstrap_servers).settings
    bootstrap, properties = settings.kafka.bootstrap_servers, settings.kafka.client
    partitions = _partitions_of(topic, bootstrap, properties)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    stop = threading.Event()
    with (
        stopped_by_signals(stop.set),
        Ticker(bootstrap, topic, run=new_run(), interval_ms=every, properties=properties) as ticker,
    ):
        words = f"a tick every {format_duration(every)} to {count(partitions, 'partition')} of {topic}; Ctrl-C ends it"
        stderr().print(words)
        _watch(ticker, topic, stop)
    stderr().print(f"{count(ticker.state().written, 'tick')} written")


def _partitions_of(topic: str, bootstrap: str, properties: Mapping[str, str]) -> int:
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS
    from heartwheel.kafka.topics import count_partitions

    found = count_partitions(bootstrap, topic, properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS)
    if not found:
        raise HeartwheelError(
            f"Kafka at {bootstrap} has no topic {topic}, or this user may not describe it",
            hint="create it, or name another one with --topic",
        )
    return found


def _watch(ticker: Ticker, topic: str, stop: threading.Event) -> None:
    """Print what keeps ticks from being written whenever that changes, until the end is asked for."""
    told = ""
    while not stop.wait(_LOOK_S):
        trouble = trouble_of(ticker.state(), topic)
        if trouble != told:
            stderr().print(trouble or f"ticks are written to all partitions of {topic} again")
        told = trouble


def trouble_of(state: TickerState, topic: str) -> str:
    """Return in one line where a ticker cannot write and why, empty if it can."""
    if state.silent:
        first = state.silent[0]
        if state.silent_count == 1:
            return f"no tick in partition {first.partition} of {topic}: {first.reason}"
        named = ", ".join(str(each.partition) for each in state.silent)
        more = ", ..." if state.silent_count > len(state.silent) else ""
        where = f"{state.silent_count} of {count(state.partitions, 'partition')} of {topic} ({named}{more})"
        return f"no tick in {where}: {first.reason}"
    return f"no ticks in {topic}: {state.reason}" if state.reason else ""
