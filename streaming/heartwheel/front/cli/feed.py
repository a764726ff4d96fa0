"""`heartwheel feed`: simulated members that beat, pause, leave and die, with the truth about each of them in a file."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from heartwheel.base import phrases
from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.console import (
    AsJson,
    BootstrapFlag,
    ConfigFile,
    SetFlags,
    figures_table,
    load,
    print_json,
    stderr,
    stdout,
)
from heartwheel.front.cli.options import parsed_duration
from heartwheel.settings import Settings, format_duration

if TYPE_CHECKING:
    from heartwheel.proof.members.feeder import Feeder
    from heartwheel.proof.members.schedule import FeedPlan
    from heartwheel.proof.members.truth import Summary

_REDRAW_S = 0.25


def feed_plan(settings: Settings, duration_ms: int | None) -> FeedPlan:
    """Return the plan of a feeder for these settings.

    Args:
        duration_ms: length of the feed, ms; endless if absent.
    """
    from heartwheel.proof.members.schedule import FeedPlan

    return FeedPlan(**settings.feed.model_dump(), duration_ms=duration_ms)


def _duration(text: str) -> int:
    length_ms = parsed_duration(text)
    if length_ms <= 0:
        raise typer.BadParameter("must be longer than 0")
    return length_ms


def feed(
    *,
    groups: Annotated[int | None, typer.Option(help="Groups to simulate (feed.groups).")] = None,
    members: Annotated[int | None, typer.Option(help="Members of each group (feed.members_per_group).")] = None,
    kill_rate: Annotated[
        float | None, typer.Option(help="A member's chance per minute to fall silent (feed.kill_rate).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="One seed, one schedule (feed.seed).")] = None,
    duration: Annotated[
        int | None, typer.Option(parser=_duration, metavar="TIME", help="Such as 90s; by default until Ctrl-C.")
    ] = None,
    truth: Annotated[
        Path, typer.Option(metavar="FILE", help="The output file: who was stopped when, as JSON lines; overwritten.")
    ] = Path("artifacts/truth.jsonl"),
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
    json: AsJson = False,
) -> None:
    """Simulate members that beat, pause, leave, die and return, and record the truth about them.

    One seed gives one schedule. The truth file contains who was stopped when, by the broker's own append times, so that
    expirations can be compared with it. `heartwheel config` lists every setting of [feed].

    For example:

        heartwheel feed --groups 50 --members 20 --duration 2m

        heartwheel feed --kill-rate 0.5 --set feed.garbage_share=0.01 --seed 7
    """
    settings = load(
        config,
        set_,
        kafka__bootstrap_servers=bootstrap_servers,
        feed__groups=groups,
        feed__members_per_group=members,
        feed__kill_rate=kill_rate,
        feed__seed=seed,
    ).settings
    plan = feed_plan(settings, duration)
    _require_topic(settings)
    summary = _run(settings, plan, truth)
    _show(summary, truth, as_json=json)


def _require_topic(settings: Settings) -> None:
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS
    from heartwheel.kafka.topics import describe_topics

    topic, bootstrap = settings.kafka.topics.heartbeats, settings.kafka.bootstrap_servers
    properties = settings.kafka.client
    found = describe_topics(bootstrap, [topic], properties=properties, connect_timeout_ms=WATCHED_TIMEOUT_MS)
    if topic not in found:
        raise HeartwheelError(f"Kafka at {bootstrap} has no topic {topic}", hint="heartwheel topics --create")


def _run(settings: Settings, plan: FeedPlan, truth: Path) -> Summary:
    from heartwheel.engine.rules.config import coordinator_config
    from heartwheel.proof.members.feeder import Feeder

    kafka = settings.kafka
    coordinator = coordinator_config(settings.coordinator.model_dump(by_alias=False))
    topic = kafka.topics.heartbeats
    feeder = Feeder(plan, kafka.bootstrap_servers, topic, truth, properties=kafka.client, coordinator=coordinator)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stderr().print(
        f"feeding {phrases.count(plan.members, 'member')} of {phrases.count(plan.groups, 'group')} "
        f"to {kafka.topics.heartbeats}, "
        f"{phrases.count(round(plan.beats_per_s), 'heartbeat')} a second; Ctrl-C ends it",
    )
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(feeder.run, stop)
        _watch(feeder, plan, future)
        return future.result()


def _watch(feeder: Feeder, plan: FeedPlan, future: Future[Summary]) -> None:
    """Show progress until the feed is over; the feed has a thread of its own, so that drawing never delays it."""
    console = stderr()
    columns = (SpinnerColumn(), BarColumn(), TextColumn("{task.fields[sent]} sent"), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as progress:
        total = None if plan.duration_ms is None else plan.duration_ms / 1000
        task = progress.add_task("", total=total, sent=0)
        while True:
            turns = ", ".join(f"{count} {turn}" for turn, count in dict(feeder.turns).items())
            progress.update(task, completed=progress.tasks[0].elapsed or 0, sent=feeder.sent, description=turns)
            try:
                future.exception(_REDRAW_S)
            except TimeoutError:
                continue
            return


def _show(summary: Summary, truth: Path, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        print_json(msgspec.to_builtins(summary) | {"truth": str(truth)})
        return
    rows = {"members": summary.members, "sent": summary.sent, "acknowledged": summary.acknowledged}
    rows |= {f"members {turn}": count for turn, count in summary.turns.items()}
    rows |= {f"garbage: {kind}": count for kind, count in summary.garbage.items()}
    rows |= {f"errors: {name}": count for name, count in summary.errors.items()}
    stdout().print(figures_table("what", rows, "count"))
    took = format_duration((summary.ended_ms - summary.started_ms) // 1000 * 1000)
    stderr().print(f"fed for {took}; the truth is in {truth}")
