"""One million members, live, on the cores that broker and feeder use too: does the job keep up, and whom does it find?

Run it as `PYTHONPATH=tests python -m benchmarks.million [--members 1000000] [--every 3] [--seconds 600]`: tables on
stderr, JSON on stdout. Every member beats once in `--every` seconds, and has a session of three beats, 30 s at least.
Meanwhile others beat once and fall silent, one by one; at the end all members fall silent at once, and the last verdict
is waited for. Lateness is from a deadline to the append time of its expiration, by the broker's clock. It is measured
once the job has met all members and `--warm` seconds are over.

Ten million members: `--members 10000000 --every 30 --shards 32 --state-partitions 2 --batch 2500000 --no-mass`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.base.percentiles import percentile
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.plugin import HeartbeatPlugin
from heartwheel.engine.runtime.driver.job import start_query
from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import reader
from heartwheel.kafka.readback import read_topic
from kafka import TopicPartition
from support.bench import Session, Usage, records_max_of, resident_mib, say, until
from support.rawfeed import RawFeed, RawMembers

SESSION_MS: Final = 30_000
DYING_SESSION_MS: Final = 10_000
CATCH_UP_S_MAX: Final = 240
"""So long a job may take after the warm-up until it has no backlog."""

_IN_PACE: Final = 5
"""After so many batches in a row that begin without a backlog a job keeps pace."""

KEPT_MS: Final = 300_000
"""How long heartbeats are kept: 333 thousand a second would fill 60 GB of disk in a quarter of an hour."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, help="left out, one for a thousand members, at least a thousand")
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two heartbeats of a member")
    parser.add_argument("--seconds", type=int, default=600, help="how long it is measured")
    parser.add_argument("--dying", type=int, default=1_000, help="members that fall silent meanwhile")
    parser.add_argument("--warm", type=int, default=30, help="seconds of beats before it is measured, at least")
    parser.add_argument("--batch", type=int, help="most heartbeats a batch; left out, six of each member")
    parser.add_argument("--state-partitions", type=int, default=1, help="tasks of the state side")
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--trigger", default="1s", help="engine.trigger_interval")
    parser.add_argument("--set", action="append", default=[], help="further settings")
    parser.add_argument("--no-mass", action="store_true", help="leave out the silence of all at once")
    chosen = parser.parse_args()
    flags = (f"engine.trigger_interval={chosen.trigger}", *chosen.set)
    with (
        tempfile.TemporaryDirectory(prefix="heartwheel-million-") as folder,
        EmbeddedKafka(heap="1g", config={"log.retention.check.interval.ms": "30000"}) as broker,
    ):
        kept = {"spark.sql.streaming.numRecentProgressUpdates": str(10 * chosen.seconds)}
        session = Session(
            broker,
            Path(folder),
            records_max=chosen.batch or records_max_of(chosen.members),
            flags=flags,
            conf=kept,
            shuffle_partitions=chosen.state_partitions,
        )
        report = measure(session, chosen)
        session.close()
    sys.stdout.write(json.dumps(report) + "\n")


def measure(session: Session, chosen: Any) -> dict[str, Any]:
    """Run the job live."""
    run = new_run()
    session_ms = max(SESSION_MS, round(3000 * chosen.every))
    living = RawMembers(
        members=chosen.members,
        groups=chosen.groups or max(1000, chosen.members // 1000),
        generation_id=1,
        session_timeout_ms=session_ms,
    )
    dying = msgspec.structs.replace(
        living, members=chosen.dying, first=chosen.members, session_timeout_ms=DYING_SESSION_MS
    )
    report: dict[str, Any] = {}
    with (
        session.topics(shards=chosen.shards, runs=(run,), kept_ms=KEPT_MS) as config,
        session.fed(config, living) as feed,
        Ticker(session.broker.bootstrap, config.source, run=run, interval_ms=config.tick_interval_ms),
    ):
        query = start_query(
            HeartbeatPlugin(), session.spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds"
        )
        over = threading.Event()
        beats = threading.Thread(target=beat, args=(feed, round(chosen.every * 1000), over), daemon=True)
        beats.start()
        warm_up(query, chosen)
        skipped, usage = len(query.recentProgress), Usage()
        session.feed(config, dying, per_batch=1, interval_ms=(chosen.seconds - 15) * 1000, rounds=1)
        memory = resident_mib()
        time.sleep(15)  # the last of them expire
        over.set()
        beats.join()
        cores, silent_ms = usage.cores(), time.time_ns() // 1_000_000
        report["live"] = live_figures(session, config, query, skipped, chosen) | {
            **{f"cores, {who}": used for who, used in cores.items()},
            **{f"resident, {who}, MiB": mib for who, mib in memory.items()},
        }
        say(f"{chosen.members:,} members, a heartbeat every {chosen.every} s, {chosen.seconds} s", report["live"])
        if not chosen.no_mass:
            report["all silent"] = mass_figures(session, config, chosen.members + report["live"]["expired"], silent_ms)
            say("all of them silent at once", report["all silent"])
        query.stop()
    return report


def beat(feed: RawFeed, interval_ms: int, over: threading.Event) -> None:
    """Let all members beat until it is over."""
    while not over.is_set():
        feed.run(interval_ms=interval_ms, seconds=5)


def warm_up(query: StreamingQuery, chosen: Any) -> None:
    """Wait until the warm-up is over, and five batches in a row begin without a backlog, if they ever do."""
    time.sleep(max(chosen.warm, chosen.every))
    begun, most = len(query.recentProgress), chosen.members / chosen.every

    def keeps_pace() -> bool:
        last = query.recentProgress[begun:][-_IN_PACE:]
        return len(last) == _IN_PACE and all(_behind(batch) < most for batch in last)

    try:
        until(keeps_pace, seconds=CATCH_UP_S_MAX)
    except TimeoutError:
        sys.stderr.write("it does not keep pace, and is measured all the same\n")


def live_figures(
    session: Session, config: JobConfig, query: StreamingQuery, skipped: int, chosen: Any
) -> dict[str, Any]:
    """Sum up the live part."""
    batches = [batch for batch in query.recentProgress[skipped:] if batch["numInputRows"]]
    took = [batch["durationMs"]["triggerExecution"] for batch in batches]
    behind = [_behind(batch) for batch in batches]
    rows = sum(batch["numInputRows"] for batch in batches)
    third = max(1, len(behind) // 3)
    late, false = _judged(session, config, chosen.members)
    return {
        "heartbeats/s, by the time of the batches": round(rows / max(0.001, sum(took) / 1000)),
        "batches": len(batches),
        "batch p50, ms": percentile(took, 0.5),
        "batch p99, ms": percentile(took, 0.99),
        "backlog, first third, records": percentile(behind[:third], 0.5),
        "backlog, last third, records": percentile(behind[-third:], 0.5),
        "expired": len(late),
        "missed": chosen.dying - len(late),
        "falsely expired": false,
        "lateness p50, ms": percentile(late, 0.5),
        "lateness p99, ms": percentile(late, 0.99),
    }


def mass_figures(session: Session, config: JobConfig, expirations: int, silent_ms: int) -> dict[str, Any]:
    """Wait until every member is expired, and tell how late the last verdict came.

    Args:
        expirations: how many there are then, those before the silence included.
        silent_ms: when the last of them beat, epoch ms.
    """
    topic = config.topics["expirations"]
    until(lambda: _count(session, topic) >= expirations, seconds=600)
    first = last = 0
    deadlines: list[int] = []
    for record in read_topic(session.broker.bootstrap, topic):
        row = msgspec.json.decode(record.value or b"")
        if row["deadline_ms"] > silent_ms:
            deadlines.append(row["deadline_ms"])
            first, last = first or record.append_ms, max(last, record.append_ms)
    return {
        "verdicts": len(deadlines),
        "last verdict after last deadline, ms": last - max(deadlines, default=0),
        "verdicts/s": round(len(deadlines) / max(0.001, (last - first) / 1000)),
        **{f"resident, {who}, MiB": mib for who, mib in resident_mib().items()},
    }


def _count(session: Session, topic: str) -> int:
    with reader(session.broker.bootstrap) as consumer:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return sum(consumer.end_offsets(partitions).values())


def _behind(batch: Any) -> int:
    source = batch["sources"][0]
    read, there = (
        sum(next(iter(json.loads(source[name]).values())).values()) if source.get(name) else 0
        for name in ("endOffset", "latestOffset")
    )
    return max(0, there - read)


def _judged(session: Session, config: JobConfig, living: int) -> tuple[list[int], int]:
    """Return how late the verdicts on those who died are, and how many were on others."""
    late, false = list[int](), 0
    for record in read_topic(session.broker.bootstrap, config.topics["expirations"]):
        row = msgspec.json.decode(record.value or b"")
        if int(row["member_id"].rpartition("-")[2]) >= living:
            late.append(record.append_ms - row["deadline_ms"])
        else:
            false += 1
    return late, false


if __name__ == "__main__":
    main()
