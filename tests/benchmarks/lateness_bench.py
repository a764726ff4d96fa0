"""Measure how late verdicts are: deadlines spread evenly, on a real broker; a table on stderr, JSON on stdout.

Run it as `python tests/benchmarks/lateness_bench.py [--seconds 60] [--expirations 1000]`. With `--variant`, as in
`--variant "spark.shuffle_partitions=2 engine.trigger_interval=400ms" --variant ""`, settings are measured one after the
other in one JVM, which is warmer for each later one: turn the order round, too. Each load has members that
beat, at the given rate, and others that beat once, one by one, and fall silent. Lateness is from a member's deadline to
the append time of its expiration, both by the broker's clock. Broker, feeder, JVM and Python workers share the cores;
the cores that each used are in the same row, so that a busy machine shows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, Final

from heartwheel.base.percentiles import percentile
from heartwheel.engine.heartbeats.config import job_config
from heartwheel.engine.heartbeats.plugin import HeartbeatPlugin
from heartwheel.engine.runtime.driver.checkpoint import Manifest
from heartwheel.engine.runtime.driver.job import start_query
from heartwheel.engine.runtime.driver.map_tasks import MapTasks
from heartwheel.engine.runtime.driver.session import session_conf, start_session
from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.settings import load_settings
from support.bench import lateness_of
from support.cores import cpu_s
from support.rawfeed import RawFeed, RawMembers

PARTITIONS: Final = 4
SESSION_MS: Final = 6_000
LOADS: Final = ((200, 70), (100_000, 33_000))
"""Members that beat, and their heartbeats a second."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long each load is measured")
    parser.add_argument("--warm", type=int, default=25, help="how long it runs before that")
    parser.add_argument("--expirations", type=int, default=1_000, help="members that fall silent in each load")
    parser.add_argument("--set", action="append", default=[], help="settings, as `engine.trigger_interval=250ms`")
    parser.add_argument("--variant", action="append", help="settings of one variant, with spaces between them")
    parser.add_argument("--loads", type=int, nargs="*", default=[0, 1], help="which of the loads")
    arguments = parser.parse_args()
    report: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="heartwheel-bench-") as folder, EmbeddedKafka(heap="512m") as broker:
        flags = [
            f"kafka.bootstrap_servers={broker.bootstrap}",
            "spark.master=local[2]",
            "spark.driver_memory=2GiB",
            *arguments.set,
        ]
        settings = load_settings(None, {}, flags).settings
        conf = session_conf(settings, fetch_jars("spark"), shuffle_partitions=2, log_file=Path(folder) / "spark.log")
        conf["spark.sql.streaming.numRecentProgressUpdates"] = "10000"  # those of the warm-up, too
        spark = start_session(conf, log_file=Path(folder) / "spark.log")
        for number, variant in product(arguments.loads, arguments.variant or [""]):
            place = Path(folder) / str(len(report))
            row = measure(spark, broker, [*flags, *variant.split()], place, *LOADS[number], arguments)
            report.append({"variant": variant, **row})
            sys.stderr.write(f"\n{LOADS[number][0]:,} members, {LOADS[number][1]:,} heartbeats/s {variant}\n")
            sys.stderr.writelines(f"  {name:28} {value:>10,}\n" for name, value in row.items())
        spark.stop()
    sys.stdout.write(json.dumps(report) + "\n")


def measure(
    spark: Any, broker: EmbeddedKafka, flags: list[str], place: Path, members: int, rate: int, arguments: Any
) -> dict[str, Any]:
    """Run one load, and give its figures.

    Args:
        place: where its checkpoint goes.
    """
    kinds = ("heartbeats", "expirations", "triggers", "status", "rejects")
    names = {name: f"{name}-{place.name}" for name in kinds}
    specs = engine_topics(TopicNames(**names), heartbeat_partitions=PARTITIONS, output_partitions=PARTITIONS)
    ensure_topics(broker.bootstrap, specs, create=True)
    topic_flags = [f"kafka.topics.{name}={real}" for name, real in names.items()]
    settings = load_settings(None, {}, [*flags, *topic_flags, f"checkpoint.location={place}"]).settings
    run, partitions = new_run(), Manifest.of(settings).shuffle_partitions
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    config = job_config(settings, shuffle_partitions=partitions, runs=(run,))
    config = replace(config, map_tasks=MapTasks(config.map_tasks, state_partitions=partitions).tasks)
    living = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
    # Each in a group of its own: its expiration is then all that the group's rules have to do.
    dying = RawMembers(
        members=arguments.expirations,
        first=members,
        groups=members + arguments.expirations,
        generation_id=1,
        session_timeout_ms=SESSION_MS,
    )
    with Ticker(broker.bootstrap, config.source, run=run, interval_ms=config.tick_interval_ms):
        _feed(broker, config.source, living, 4_000, rounds=1)
        query = start_query(
            HeartbeatPlugin(), spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds"
        )
        per_batch = max(1, min(1_000, rate // 16))
        interval_ms = round(members / rate * 1000)
        _feed(broker, config.source, living, per_batch, interval_ms=interval_ms, seconds=arguments.warm)
        skipped = len(query.recentProgress)
        cpu, began_s = cpu_s(os.getpid()), time.monotonic()
        deaths = threading.Thread(
            target=_feed,
            args=(broker, config.source, dying, 1),
            kwargs={"interval_ms": (arguments.seconds - 5) * 1000, "rounds": 1},
        )
        deaths.start()
        _feed(broker, config.source, living, per_batch, interval_ms=interval_ms, seconds=arguments.seconds)
        used, wall_s = cpu_s(os.getpid()), time.monotonic() - began_s
        deaths.join()
        batches = [each for each in query.recentProgress[skipped:] if each["numInputRows"]]
        give_up_s = time.monotonic() + 120
        while len(late := lateness_of(broker, names["expirations"])) < dying.members and time.monotonic() < give_up_s:
            time.sleep(0.5)
        query.stop()
    took = sorted(each["durationMs"]["triggerExecution"] for each in batches)
    return {
        "expirations": len(late),
        "lateness p50, ms": percentile(late, 0.5),
        "lateness p90, ms": percentile(late, 0.9),
        "lateness p99, ms": percentile(late, 0.99),
        "lateness max, ms": late[-1] if late else 0,
        "batches": len(took),
        "batch p10, ms": percentile(took, 0.1),
        "batch p50, ms": percentile(took, 0.5),
        "batch p99, ms": percentile(took, 0.99),
        **{f"cores, {who}": round((used[who] - cpu[who]) / wall_s, 2) for who in used},
    }


def _feed(broker: EmbeddedKafka, topic: str, who: RawMembers, per_batch: int, **limits: Any) -> None:
    with RawFeed(broker.bootstrap, topic, who, records_per_batch=per_batch) as feed:
        feed.run(**limits)


if __name__ == "__main__":
    main()
