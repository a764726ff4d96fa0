"""Measure the job end to end on a real broker: tables on stderr, JSON on stdout.

Run it as `make bench`, or as `PYTHONPATH=tests python tests/benchmarks/job_bench.py` with `--members 100000 1000000`,
`--records 6000000` and `--steady 60`, say. Broker, raw feeder, JVM and Python workers share the cores. The figures of a
row are taken from the same records in the same run, so that they can be compared: `source` is the heartbeat topic into
a no-op sink, `packed` adds the map side, `drain` is the whole way to verdicts in Kafka, once also with the bytes of
every heartbeat sent to the shards. With `--turns` each is measured
so often, and the fastest time counts. The feeder sends well-filled batches, and a member's heartbeats are the same
bytes each time, as real ones mostly are.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.base.percentiles import percentile
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.plugin import HeartbeatPlugin
from heartwheel.engine.runtime.driver.job import start_query
from heartwheel.engine.runtime.driver.ticker import Ticker, new_run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.bench import RECORDS_MAX, Run, Session, Usage, lateness_of, records_max_of, say, until
from support.rawfeed import RawMembers

SESSION_MS = 10_000

Costed = tuple[Run, dict[str, float]]
"""A run, and what a record cost whom, us of one core."""


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--members", type=int, nargs="*", default=[100_000, 1_000_000], help="live members of each drain"
    )
    parser.add_argument("--records", type=int, help="heartbeats of each drain; left out, four batches")
    parser.add_argument(
        "--batch", type=int, help="most heartbeats a batch; left out, six of each member, 1.5 million at least"
    )
    parser.add_argument("--turns", type=int, default=1, help="how often each drain is done; the fastest time counts")
    parser.add_argument("--steady", type=int, default=60, help="seconds of steady load; 0 leaves it out")
    parser.add_argument("--rate", type=int, default=33_000, help="heartbeats a second of the steady load")
    parser.add_argument("--conf", action="append", default=[], help="a further setting of Spark, name=value")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"drain": [], "steady": None}
    with tempfile.TemporaryDirectory(prefix="heartwheel-bench-") as folder, EmbeddedKafka(heap="512m") as broker:
        conf = dict(setting.split("=", 1) for setting in arguments.conf)
        session = Session(broker, Path(folder), records_max=RECORDS_MAX, conf=conf)
        warm_up(session)
        for members in arguments.members:
            batch = arguments.batch or records_max_of(members)
            row = drain(session, members, batch=batch, records=arguments.records or 4 * batch, turns=arguments.turns)
            report["drain"].append(row)
            say(f"drain with {members:,} live members", row)
        if arguments.steady:
            report["steady"] = steady(session, 100_000, arguments.rate, arguments.steady)
            say(f"steady {arguments.rate:,} heartbeats/s", report["steady"])
        session.close()
    sys.stdout.write(json.dumps(report) + "\n")


def warm_up(session: Session) -> None:
    """Let JVM and workers have seen everything once."""
    with session.topics(shards=8) as config:
        session.feed(config, RawMembers(members=10_000), records=500_000)
        session.drain(config)


def drain(session: Session, members: int, *, batch: int, records: int, turns: int) -> dict[str, Any]:
    """Register the members, then drain a backlog of their heartbeats: as often as is said, in turns with its parts."""
    with session.topics(shards=max(8, members // 60_000), records_max=batch) as config:
        who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
        session.feed(config, who, rounds=1)
        first = session.drain(config)
        fed = session.feed(config, who, records=records)
        turns_of = [turn(session, config) for _ in range(turns)]
        turns_of.append({"source": costed(partial(session.source, config))})
    found = {part: fastest(each[part] for each in turns_of if part in each) for part in turns_of[0]}
    source, drained = found["source"][0], found["drain"][0]
    return {
        "heartbeats, most a batch": batch,
        "first contact, members/s": first.per_s,
        "raw feed, heartbeats/s": round(fed),
        **{f"{part}, heartbeats/s": run.per_s for part, (run, _) in found.items()},
        "drain, best batch, heartbeats/s": drained.best_per_s,
        "drain / source": round(drained.per_s / source.per_s, 2),
        **{f"core-us a heartbeat, {part}, {who}": us for part, (_, by) in found.items() for who, us in by.items()},
    }


def turn(session: Session, config: JobConfig) -> dict[str, Costed]:
    """Measure the source, the source and the map side, and whole drains of the same records."""
    whole = replace(config, repeats=False)
    return {
        "source": costed(partial(session.source, config)),
        "packed": costed(lambda: session.pass_through(HeartbeatPlugin().pack(session.spark, config))),
        "drain, all bytes sent": costed(partial(session.drain_again, whole)),
        "drain": costed(partial(session.drain_again, config)),
    }


def fastest(measured: Iterable[Costed]) -> Costed:
    """Pick the fastest of some runs, as a JVM compiles meanwhile what it runs."""
    return max(measured, key=lambda each: each[0].per_s)


def costed(work: Callable[[], Run]) -> Costed:
    """Run something, and tell what a record cost whom, us of one core."""
    usage = Usage()
    run = work()
    spent = usage.seconds()
    whose = ("JVM", "workers", "broker")
    return run, {who: round(spent[who] / max(1, run.records) * 1e6, 2) for who in whose}


def steady(session: Session, members: int, rate: int, seconds: int) -> dict[str, Any]:
    """Go live under a steady load in which some members fall silent, and see how late that is known."""
    with session.topics(shards=8) as config:
        dying = RawMembers(members=2_000, first=members, generation_id=1, session_timeout_ms=SESSION_MS)
        living = RawMembers(members=members, generation_id=1, session_timeout_ms=60_000)
        session.feed(config, living, rounds=1)
        session.drain(config)
        query = start_query(
            HeartbeatPlugin(), session.spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds"
        )
        with Ticker(session.broker.bootstrap, config.source, run=new_run(), interval_ms=config.tick_interval_ms):
            until(lambda: len(query.recentProgress) >= 3)
            session.feed(config, dying, interval_ms=seconds * 400, rounds=1)
            session.feed(config, living, interval_ms=round(members / rate * 1000), seconds=seconds)
            until(lambda: len(lateness_of(session.broker, config.topics["expirations"])) >= dying.members)
        query.stop()
        return steady_figures(session, config, query)


def steady_figures(session: Session, config: JobConfig, query: StreamingQuery) -> dict[str, Any]:
    """Sum up the batches of a steady load, and how late its verdicts were."""
    loaded = [batch for batch in query.recentProgress if batch["numInputRows"] > 10_000]
    durations = [batch["durationMs"]["triggerExecution"] for batch in loaded]
    late = lateness_of(session.broker, config.topics["expirations"])
    return {
        "loaded batches": len(loaded),
        "heartbeats in them": sum(batch["numInputRows"] for batch in loaded),
        "batch p50, ms": percentile(durations, 0.5),
        "batch p99, ms": percentile(durations, 0.99),
        "expired": len(late),
        "lateness p50, ms": percentile(late, 0.5),
        "lateness p99, ms": percentile(late, 0.99),
        "lateness max, ms": percentile(late, 1),
    }


if __name__ == "__main__":
    main()
