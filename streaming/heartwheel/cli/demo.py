"""`heartwheel demo`: a broker, members that die, the job, and whether it was right."""

from __future__ import annotations

import contextlib
import json as jsonlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heartwheel.cli.console import ConfigFile, SetFlags, load, plain_table, stderr, stdout
from heartwheel.cli.demo_screen import DemoScreen
from heartwheel.cli.feed import feed_plan
from heartwheel.cli.progress import fetch_shown, phase
from heartwheel.cli.signals import stopped_by_signals
from heartwheel.cli.topics import topic_specs
from heartwheel.errors import HeartwheelError
from heartwheel.settings import DashboardSettings, Settings

if TYPE_CHECKING:
    from heartwheel.dashboard.dashboard import Dashboard
    from heartwheel.demo.folder import DemoFolder

DEMO_DEFAULTS: Final[Mapping[str, str]] = {
    "engine.skew_allowance": "0ms",  # broker and driver read one clock
    "spark.driver_memory": "1GiB",
    "feed.kill_rate": "0.3",  # with 200 members one a second
    "feed.return_share": "0.9",  # or they would soon be gone
    "canary.enabled": "true",  # nobody else's topics are written to
}
"""What the demo takes where nobody set anything: for one small machine, and so that there is something to see."""


def demo(
    *,
    duration: Annotated[
        str | None, typer.Option(metavar="TIME", help="Feed for so long, then judge, such as 60s; else until Ctrl-C.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the outcome there, for machines.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Gets broker data, checkpoint, truth and logs; is cleared first.")
    ] = Path("artifacts/demo"),
    groups: Annotated[int | None, typer.Option(help="Groups to simulate (feed.groups).")] = None,
    members: Annotated[int | None, typer.Option(help="Members of each group (feed.members_per_group).")] = None,
    kill_rate: Annotated[
        float | None, typer.Option(help="Chance a member and minute to fall silent (feed.kill_rate).")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="One seed, one schedule (feed.seed).")] = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Watch it work: a real Kafka broker, members that beat and die, the job, and who it says was expired.

    Everything runs here and in one folder; no Kafka is needed, and none that runs is touched. At the end the
    expirations are held against the log. Exit code 1 if one was false or missed.

    For example:

        heartwheel demo

        heartwheel demo --duration 60s --json demo.json

        heartwheel demo --groups 5 --members 4 --kill-rate 1 --set engine.trigger_interval=500ms
    """
    settings = demo_settings(
        config,
        set_,
        demo__duration=duration,
        feed__groups=groups,
        feed__members_per_group=members,
        feed__kill_rate=kill_rate,
        feed__seed=seed,
    )
    # The clients outlive the broker by a moment, and would say so at length.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    from heartwheel.demo.folder import fresh_folder

    broker_jars, spark_jars = fetch_shown("broker"), fetch_shown("spark")
    with fresh_folder(folder) as place:
        report = _run(settings, place, broker_jars, spark_jars)
    if report is None:
        stderr().print("stopped before anything was fed")
        return
    _show(report, place)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(jsonlib.dumps(report, indent=2) + "\n", encoding="utf-8")
    if not report["ok"]:
        raise typer.Exit(1)


def demo_settings(config: Path | None, set_: list[str] | None, **named: Any) -> Settings:
    """Load the configuration with the demo's own defaults beneath every other layer."""
    loaded = load(config, set_, **named)
    # A default of the demo is one: whatever a file, the environment or a flag says goes over it.
    unset = [f"{path}={value}" for path, value in DEMO_DEFAULTS.items() if loaded.origin[path].layer == "default"]
    settings = load(config, [*(set_ or ()), *unset], **named).settings
    if settings.demo.duration_ms and settings.feed.protocol != "presence":
        raise HeartwheelError(
            f"the demo can not judge members of protocol {settings.feed.protocol}",
            hint="leave out --duration, or set feed.protocol=presence",
        )
    return settings


def _run(
    settings: Settings, place: DemoFolder, broker_jars: list[Path], spark_jars: list[Path]
) -> dict[str, Any] | None:
    import msgspec

    from heartwheel.broker.embedded import EmbeddedKafka
    from heartwheel.demo.demo import Demo
    from heartwheel.demo.tally import Tally
    from heartwheel.kafka.topics import ensure_topics

    tally = Tally(settings.engine.shards)
    with contextlib.ExitStack() as stack:
        with phase("starting a Kafka broker") as say:
            broker = stack.enter_context(EmbeddedKafka(place.broker, jars=broker_jars))
            say("creating the topics")
            settings = _placed(settings, broker.bootstrap, place)
            ensure_topics(broker.bootstrap, topic_specs(settings))
        page = stack.enter_context(_dashboard(settings))
        screen = stack.enter_context(DemoScreen(tally, address=page.url))
        for line in where_to_look(settings, place):
            screen.note(line)
        duration_ms = settings.demo.duration_ms or None
        # Whoever lived to the end says so, or the last judgement would wait for the silence of everybody.
        plan = msgspec.structs.replace(feed_plan(settings, duration_ms), leave_at_end=duration_ms is not None)
        show = Demo(settings, place, tally, screen, plan=plan, jars=spark_jars, on_live=page.start_canary)
        with stopped_by_signals(show.stop):
            return show.run()


def _dashboard(settings: Settings) -> Dashboard:
    """Start the dashboard; where its usual port is taken, on any that is free, as a demo must not fail for that."""
    from heartwheel.dashboard.dashboard import Dashboard
    from heartwheel.dashboard.server import is_free

    wanted = settings.dashboard
    if wanted.port == DashboardSettings().port and not is_free(wanted.host, wanted.port):
        settings = settings.model_copy(update={"dashboard": wanted.model_copy(update={"port": 0})})
    # A canary that beats before the job lives would give it a backlog to read, and its first batch takes longest.
    return Dashboard(settings, hold_canary=True)


def _placed(settings: Settings, bootstrap: str, place: DemoFolder) -> Settings:
    """Point the settings at the demo's own broker, which asks for no login, and at its checkpoint."""
    kafka = settings.kafka.model_copy(update={"bootstrap_servers": bootstrap, "client": {}})
    checkpoint = settings.checkpoint.model_copy(update={"location": str(place.checkpoint)})
    return settings.model_copy(update={"kafka": kafka, "checkpoint": checkpoint})


def where_to_look(settings: Settings, place: DemoFolder) -> list[str]:
    """Say where a person can look further while the demo runs."""
    topics = settings.kafka.topics
    return [
        f"broker      {settings.kafka.bootstrap_servers}, while the demo runs; any Kafka tool can look into it",
        f"topics      in {topics.heartbeats}; out {topics.expirations}, {topics.triggers}, {topics.status}",
        f"checkpoint  {_shown(place.checkpoint)}",
        f"logs        {_shown(place.spark_log)}, {_shown(place.broker / 'server.log')}",
    ]


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _show(report: Mapping[str, Any], place: DemoFolder) -> None:
    late = report["lateness_ms"]
    rows = {
        "heartbeats": f"{report['heartbeats']:,}",
        "members": f"{report['members']:,}",
        "killed": f"{report['killed']:,}",
        "to be expired": f"{report['expected']:,}",
        "expired": f"{report['expired']:,}",
        "false": f"{report['false']:,}",
        "missed": f"{report['missed']:,}",
        "duplicates": f"{report['duplicates']:,}",
        "lateness p50, p99, max": f"{late['p50']:,} ms, {late['p99']:,} ms, {late['max']:,} ms",
        "first expiration seen after": f"{report['first_expiration_s']} s",
    }
    table = plain_table("judged by the log", "")
    for name, value in rows.items():
        table.add_row(name, value)
    stdout().print(table, markup=False)
    verdict = "nobody was expired wrongly, nobody was missed" if report["ok"] else "something is wrong, see above"
    stderr().print(f"{verdict}; next: heartwheel inspect --checkpoint {_shown(place.checkpoint)}", markup=False)
    for name in ("false", "missed"):
        for silence in report[f"examples_{name}"]:
            stderr().print(f"{name}: {silence['member_id']} of {silence['group_id']}, {silence['deadline_ms']}")
