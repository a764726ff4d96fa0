"""`heartwheel demo`: a broker, members that die, the job, and whether it was right."""

from __future__ import annotations

import contextlib
import json as jsonlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heartwheel.base.plain import plain
from heartwheel.front.cli.audit import audit_config
from heartwheel.front.cli.console import ConfigFile, SetFlags, figures_table, load, stderr, stdout
from heartwheel.front.cli.demo_place import check_port, dashboard_of, demo_gateway, placed
from heartwheel.front.cli.demo_real import REAL_DEFAULTS, run_real, show_real
from heartwheel.front.cli.demo_screen import DemoScreen
from heartwheel.front.cli.feed import feed_plan
from heartwheel.front.cli.options import parsed_duration
from heartwheel.front.cli.progress import fetch_shown, phase
from heartwheel.front.cli.signals import stopped_by_signals
from heartwheel.front.cli.topic_specs import topic_specs
from heartwheel.settings import Settings

if TYPE_CHECKING:
    from heartwheel.front.demo.folder import DemoFolder
    from heartwheel.readers.dashboard.dashboard import Dashboard

DEMO_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver_memory": "1GiB",
    "feed.protocol": "mix",  # or most pages would have nothing to show
    "feed.kill_rate": "0.3",  # of members of presence groups; those of classic groups are calm
    "feed.return_share": "0.9",  # or they would soon be gone
    "canary.enabled": "true",  # nobody else's topics are written to
}
"""What the demo takes where nobody set anything: for one small machine, and so that there is something to see."""

_FINDINGS_MAX: Final = 1_000
_FINDINGS_SHOWN: Final = 20


def demo(
    *,
    duration: Annotated[
        int | None,
        typer.Option(
            parser=parsed_duration, metavar="TIME", help="Feed for so long, then judge, such as 60s; else until Ctrl-C."
        ),
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
    real: Annotated[
        bool, typer.Option("--real", help="Real consumers of real groups, and what Kafka's coordinator says of them.")
    ] = False,
    restarts: Annotated[
        int, typer.Option(metavar="N", min=0, help="With --real: stop and start the broker so often during that.")
    ] = 0,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Watch it work: a real Kafka broker, members that beat and die, the job, and who it says was expired.

    Most groups are of Kafka's classic protocol, a quarter only send heartbeats, and four show a storm, a rebalance
    that one member holds up, static members, and a poll timeout. Everything runs here and in one folder; no Kafka is
    needed, and none that runs is touched. At the end all that was written is held against the log: exit code 1 if an
    expiration or a rebalance was false or missed.

    With --real the members are consumers, in processes that are killed, frozen, hung and closed. heartwheel tap reads
    what they send from the broker's request log, and each removal is shown as Kafka's own coordinator and heartwheel
    named it: exit code 1 if they differ.

    For example:

        heartwheel demo

        heartwheel demo --duration 60s --json demo.json

        heartwheel demo --real

        heartwheel demo --groups 5 --members 4 --kill-rate 1 --set engine.trigger_interval=500ms
    """
    settings = demo_settings(
        config,
        set_,
        REAL_DEFAULTS if real else DEMO_DEFAULTS,
        demo__duration=duration,
        feed__groups=groups,
        feed__members_per_group=members,
        feed__kill_rate=kill_rate,
        feed__seed=seed,
    )
    check_port(settings)
    # The clients outlive the broker by a moment, and would say so at length.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    from heartwheel.front.demo.folder import fresh_folder

    broker_jars, spark_jars = fetch_shown("broker"), fetch_shown("spark")
    with fresh_folder(folder) as place:
        if real:
            duration_ms = settings.demo.duration_ms or None
            report = run_real(settings, place, broker_jars, spark_jars, duration_ms=duration_ms, restarts=restarts)
        else:
            report = _run(settings, place, broker_jars, spark_jars)
    if report is None:
        stderr().print("stopped before anything was fed")
        return
    if real:
        show_real(report)
    else:
        _show(report, place)
    if json is not None:
        json.parent.mkdir(parents=True, exist_ok=True)
        json.write_text(jsonlib.dumps(report, indent=2) + "\n", encoding="utf-8")
    if not report["ok"]:
        raise typer.Exit(1)


def demo_settings(
    config: Path | None, set_: list[str] | None, defaults: Mapping[str, str] = DEMO_DEFAULTS, **named: Any
) -> Settings:
    """Load the configuration with the demo's own defaults beneath every other layer."""
    loaded = load(config, set_, **named)
    # A default of the demo is one: whatever a file, the environment or a flag says goes over it.
    unset = [f"{path}={value}" for path, value in defaults.items() if loaded.origin[path].layer == "default"]
    return load(config, [*(set_ or ()), *unset], **named).settings


def _run(
    settings: Settings, place: DemoFolder, broker_jars: list[Path], spark_jars: list[Path]
) -> dict[str, Any] | None:
    import msgspec

    from heartwheel.front.demo.demo import Demo
    from heartwheel.front.demo.tally import Tally
    from heartwheel.kafka.broker.embedded import EmbeddedKafka
    from heartwheel.kafka.topics import ensure_topics

    tally = Tally(settings.engine.shards, settings.canary.group_prefix)
    with contextlib.ExitStack() as stack:
        with phase("starting a Kafka broker") as say:
            broker = stack.enter_context(EmbeddedKafka(place.broker, jars=broker_jars))
            say("creating the topics")
            settings = placed(settings, broker.bootstrap, place)
            ensure_topics(broker.bootstrap, topic_specs(settings))
        gateway = stack.enter_context(demo_gateway(settings))
        page = stack.enter_context(dashboard_of(settings, gateway.url))
        screen = stack.enter_context(DemoScreen(tally, address=page.url))
        for line in where_to_look(settings, place):
            screen.note(line)
        duration_ms = settings.demo.duration_ms or None
        # Whoever lived to the end says so, or the last judgement would wait for the silence of everybody.
        plan = msgspec.structs.replace(feed_plan(settings, duration_ms), leave_at_end=duration_ms is not None)
        show = Demo(
            settings,
            place,
            tally,
            screen,
            plan=plan,
            audited=audit_config(settings, examples_max=_FINDINGS_MAX),
            jars=spark_jars,
            on_live=when_live(page, screen, gateway.url),
        )
        with stopped_by_signals(show.stop):
            return show.run()


def when_live(page: Dashboard, screen: DemoScreen, gateway_url: str) -> Callable[[], None]:
    """Return the function to call once the job decides: a member that beats earlier is not watched yet."""

    def begin() -> None:
        page.start_canary()
        screen.note(f"join in     curl -X POST '{gateway_url}/beat/mine/me?session=10s', and see it come and go")

    return begin


def where_to_look(settings: Settings, place: DemoFolder) -> list[str]:
    """Return where a person can look further while the demo runs."""
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


def _first(after_s: float | None) -> str:
    return "none was seen" if after_s is None else f"{after_s} s after the command began"


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
        "rebalances begun": f"{report['rebalances_begun']:,}",
        "rows of triggers": f"{report['triggers_written']:,} of {report['triggers_expected']:,}",
        "lateness p50, p99, max": f"{late['p50']:,} ms, {late['p99']:,} ms, {late['max']:,} ms",
        "first expiration seen": _first(report["first_expiration_s"]),
    }
    if report["unread"]:
        rows["killed, and not in the log"] = f"{report['unread']:,}"
    if report["fed"]["unknown"]:
        rows["heartbeats of unknown fate"] = f"{report['fed']['unknown']:,}, as the broker did not answer in time"
    stdout().print(figures_table("judged by the log", rows))
    verdict = "no member was expired wrongly, none was missed" if report["ok"] else "something is wrong, see above"
    stderr().print(f"{verdict}; next: heartwheel inspect --checkpoint {_shown(place.checkpoint)}")
    for one in report["findings"][:_FINDINGS_SHOWN]:
        who = " of ".join(each for each in (one["member_id"], one["group_id"]) if each)
        stderr().print(plain(f"{one['kind']}: {who}, {one['time_ms']} {one['detail']}"))
