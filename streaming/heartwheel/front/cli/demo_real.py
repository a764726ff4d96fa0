"""`heartwheel demo --real`: real consumers, a tap, the job, and Kafka's own coordinator beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heartwheel.base.plain import plain
from heartwheel.base.wall_clock import wall_ms
from heartwheel.front.cli.console import figures_table, stderr, stdout
from heartwheel.front.cli.demo_place import dashboard_of, placed
from heartwheel.front.cli.demo_screen import DemoScreen
from heartwheel.front.cli.progress import phase
from heartwheel.front.cli.signals import stopped_by_signals
from heartwheel.front.cli.topic_specs import topic_specs

if TYPE_CHECKING:
    from heartwheel.front.demo.folder import DemoFolder
    from heartwheel.settings import Settings

REAL_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver_memory": "1GiB",
    "engine.feeds": "tap",
    "engine.shards": "2",  # a dozen members need no more
    "kafka.partitions": "2",
    "coordinator.group_initial_rebalance_delay": "1s",  # this and the sessions as the demo's broker has them
    "coordinator.group_consumer_session_timeout": "6s",
    "coordinator.group_share_session_timeout": "6s",
}
"""What the demo on real groups takes where nobody set anything: what its broker is set to."""

BROKER: Final[Mapping[str, str]] = {
    # Without a delay, as the embedded broker has it, who comes first is decided by less than a millisecond.
    "group.initial.rebalance.delay.ms": "1000",
    **{
        f"group.{kind}.{setting}": value
        for kind in ("consumer", "share")
        for setting, value in {
            "min.session.timeout.ms": "3000",
            "session.timeout.ms": "6000",
            "min.heartbeat.interval.ms": "500",
            "heartbeat.interval.ms": "500",
        }.items()
    },
}
"""What the demo's broker sets for its groups: in those of the newer protocols a death shows in seconds, too."""

WORK_TOPIC: Final = "work"
_WORK_PARTITIONS: Final = 8

GROUPS: Final[Mapping[str, str]] = {"orders": "classic", "billing": "classic", "video": "consumer", "alerts": "share"}
"""The demo's groups, and the protocol of each."""


def run_real(
    settings: Settings,
    place: DemoFolder,
    broker_jars: list[Path],
    spark_jars: list[Path],
    *,
    duration_ms: int | None,
    restarts: int = 0,
) -> dict[str, Any] | None:
    """Run the demo on real groups.

    Args:
        settings: with `REAL_DEFAULTS` beneath.
        duration_ms: how long consumers are acted on; `None` until stopped.
        restarts: how often the broker is stopped and started meanwhile.

    Returns:
        The report; `None` if it was stopped before anybody was started.
    """
    from heartwheel.front.demo.director import Cast
    from heartwheel.front.demo.real import RealDemo
    from heartwheel.front.demo.tally import Tally
    from heartwheel.kafka.broker.embedded import EmbeddedKafka
    from heartwheel.kafka.topics import ensure_topics

    tally = Tally(settings.engine.shards)
    with contextlib.ExitStack() as stack:
        with phase("starting a Kafka broker that writes down its requests") as say:
            broker = stack.enter_context(EmbeddedKafka(place.broker, jars=broker_jars, config=BROKER, request_log=True))
            say("creating the topics")
            settings = placed(settings, broker.bootstrap, place)
            ensure_topics(broker.bootstrap, topic_specs(settings))
            _create_work_topic(broker.bootstrap)
        page = stack.enter_context(dashboard_of(settings))
        screen = stack.enter_context(DemoScreen(tally, address=page.url))
        screen.note(f"requests    {broker.request_log}, which heartwheel tap reads")
        screen.note(f"Kafka says  {broker.log_file}, which heartwheel explain reads")
        cast = Cast(bootstrap=broker.bootstrap, topic=WORK_TOPIC, groups=dict(GROUPS), seed=settings.feed.seed)
        screen.note("page        Expired has both: heartwheel's row, and the one that the broker's log tells")
        show = RealDemo(
            settings,
            place,
            broker,
            cast,
            tally,
            screen,
            jars=spark_jars,
            duration_ms=duration_ms,
            restarts=restarts,
            on_kafka=lambda rows: page.picture.apply(rows, now_ms=wall_ms()),
        )
        with stopped_by_signals(show.stop):
            return show.run()


def _create_work_topic(bootstrap: str) -> None:
    from heartwheel.kafka.client import admin_client

    with admin_client(bootstrap, doing="create a topic for the consumers") as admin:
        admin.create_topics({WORK_TOPIC: {"num_partitions": _WORK_PARTITIONS, "replication_factor": 1}})


def show_real(report: Mapping[str, Any]) -> None:
    """Print what a demo on real groups came to."""
    apart, known = report["apart_ms"], report["known_after_ms"]
    rows = {
        "both, for the same reason": f"{report['agree']:,}",
        "both, for different reasons": f"{report['different_reason']:,}",
        "heartwheel alone (false)": f"{report['false']:,}",
        "Kafka alone (missed)": f"{report['missed']:,}",
        "heartwheel's moment against Kafka's": f"{apart['min']:+,} to {apart['max']:+,} ms, p50 {apart['p50']:+,} ms",
        "known after Kafka's moment": f"p50 {known['p50']:,} ms, p99 {known['p99']:,} ms, max {known['max']:,} ms",
        "events passed on": f"{report['tap']['relayed']:,} of {report['tap']['lines']:,} requests",
    }
    for reason, count in report["by_reason"].items():
        rows[f"  {reason.replace('_', ' ')}"] = f"{count:,}"
    stdout().print(figures_table("removed from a group, as named by", rows))
    for removal in report["differ"]:
        who = f"{removal['member_id']} of {removal['group_id']}"
        sides = f"Kafka {removal['kafka']} {removal['kafka_ms']}, heartwheel {removal['heartwheel']}"
        stderr().print(plain(f"{who}: {sides} {removal['deadline_ms']}"))
    verdict = "heartwheel and Kafka's coordinator named the same" if report["ok"] else "they differ, see above"
    stderr().print(verdict)
