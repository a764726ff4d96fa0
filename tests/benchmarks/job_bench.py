"""Measure the job end to end on a real broker: tables on stderr, JSON on stdout.

Run it as `make bench`, or as `PYTHONPATH=tests python tests/benchmarks/job_bench.py` with `--members 100000 1000000`,
`--records 6000000` and `--steady 60`, say. Broker, raw feeder, JVM and Python workers share the cores. The figures of a
row are taken from the same records in the same run, so that they can be compared: `source` is the heartbeat topic into
a no-op sink, `packed` adds the map side, `drain` is the whole way to verdicts in Kafka. The feeder sends well-filled
batches, and a member's heartbeats are the same bytes each time, as real ones mostly are.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.broker.embedded import EmbeddedKafka
from heartwheel.broker.jars import fetch_jars
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topics import TopicNames, engine_topics, ensure_topics
from heartwheel.percentiles import percentile
from heartwheel.settings import Settings, load_settings
from heartwheel.spark import query as queries
from heartwheel.spark.job_config import JobConfig, job_config
from heartwheel.spark.session import session_conf, start_session
from heartwheel.spark.ticker import Ticker, new_run
from support.rawfeed import RawFeed, RawMembers

PARTITIONS = 4
SESSION_MS = 10_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--members", type=int, nargs="*", default=[100_000, 1_000_000], help="live members of each drain"
    )
    parser.add_argument("--records", type=int, default=6_000_000, help="heartbeats of each drain")
    parser.add_argument("--batch", type=int, default=1_500_000, help="most heartbeats a batch while draining")
    parser.add_argument("--steady", type=int, default=60, help="seconds of steady load; 0 leaves it out")
    parser.add_argument("--rate", type=int, default=33_000, help="heartbeats a second of the steady load")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"drain": [], "steady": None}
    with tempfile.TemporaryDirectory(prefix="heartwheel-bench-") as folder, EmbeddedKafka(heap="512m") as broker:
        bench = Bench(broker, Path(folder), arguments.batch)
        for members in arguments.members:
            row = bench.drain(members, arguments.records)
            report["drain"].append(row)
            say(f"drain with {members:,} live members", row)
        if arguments.steady:
            report["steady"] = bench.steady(100_000, arguments.rate, arguments.steady)
            say(f"steady {arguments.rate:,} heartbeats/s", report["steady"])
        bench.close()
    sys.stdout.write(json.dumps(report) + "\n")


def say(title: str, figures: dict[str, Any]) -> None:
    """Print one table."""
    sys.stderr.write(f"\n{title}\n")
    sys.stderr.writelines(f"  {name:34} {value:>14,}\n" for name, value in figures.items())


class Bench:
    """Own the session and make fresh topics and checkpoints for each measurement.

    Args:
        broker: the broker.
        folder: where checkpoints go.
        batch: most heartbeats a batch while draining.
    """

    def __init__(self, broker: EmbeddedKafka, folder: Path, batch: int) -> None:
        self._broker = broker
        self._folder = folder
        self._batch = batch
        self._runs = 0
        settings = self._settings(shards=8)
        conf = session_conf(settings, fetch_jars("spark"), shuffle_partitions=2, log_file=folder / "spark.log")
        # A heap that is touched before it is measured: the first batches would pay for its pages.
        conf["spark.driver.extraJavaOptions"] += " -Xms4g -XX:+AlwaysPreTouch"
        self._spark = start_session(conf, log_file=folder / "spark.log")
        self._warm_up()

    def close(self) -> None:
        """Stop Spark."""
        self._spark.stop()

    def _warm_up(self) -> None:
        with self._topics(shards=8) as config:
            self._feed(config, RawMembers(members=10_000), records=500_000)
            run(queries.start(self._spark, dataclasses.replace(config, records_max=250_000), availableNow=True))

    def _settings(self, *, shards: int, **topics: str) -> Settings:
        flags = [
            f"kafka.bootstrap_servers={self._broker.bootstrap}",
            f"engine.shards={shards}",
            "engine.members_per_shard_max=10000000",
            "engine.output_per_batch_max=10000000",
            "spark.master=local[2]",
            "spark.driver_memory=4GiB",
            *(f"kafka.topics.{name}={real}" for name, real in topics.items()),
        ]
        return load_settings(None, {}, flags).settings

    @contextmanager
    def _topics(self, *, shards: int) -> Iterator[JobConfig]:
        self._runs += 1
        names = {
            name: f"{name}-{self._runs}" for name in ("heartbeats", "expirations", "triggers", "status", "rejects")
        }
        settings = self._settings(shards=shards, **names)
        specs = engine_topics(TopicNames(**names), heartbeat_partitions=PARTITIONS, output_partitions=PARTITIONS)
        ensure_topics(self._broker.bootstrap, specs, create=True)
        config = job_config(settings, shuffle_partitions=2)
        yield dataclasses.replace(
            config, checkpoint=str(self._folder / f"checkpoint-{self._runs}"), records_max=self._batch
        )

    def _feed(self, config: JobConfig, who: RawMembers, **limits: Any) -> float:
        with RawFeed(self._broker.bootstrap, config.topics["heartbeats"], who) as feed:
            return feed.run(**limits).records_per_s

    def drain(self, members: int, records: int) -> dict[str, Any]:
        """Register the members, then drain a backlog of their heartbeats."""
        with self._topics(shards=max(8, members // 60_000)) as config:
            who = RawMembers(members=members, generation_id=1, session_timeout_ms=600_000)
            self._feed(config, who, rounds=1)
            first = run(queries.start(self._spark, config, availableNow=True))
            fed = self._feed(config, who, records=records)
            source = self._pass_through(queries.heartbeats(self._spark, config))
            packed = self._pass_through(queries.packs(self._spark, config))
            drain = run(queries.start(self._spark, config, availableNow=True))
            again = self._pass_through(queries.heartbeats(self._spark, config))
        best_source = max(source, again)
        return {
            "first contact, members/s": first.per_s,
            "raw feed, heartbeats/s": round(fed),
            "source, heartbeats/s": best_source,
            "packed, heartbeats/s": packed,
            "drain, heartbeats/s": drain.per_s,
            "drain, best batch, heartbeats/s": drain.best_per_s,
            "drain / source": round(drain.per_s / best_source, 2),
        }

    def _pass_through(self, frame: DataFrame) -> int:
        self._runs += 1
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(self._folder / f"noop-{self._runs}"))
            .trigger(availableNow=True)
            .start()
        )
        return run(query).per_s

    def steady(self, members: int, rate: int, seconds: int) -> dict[str, Any]:
        """Go live under a steady load in which some members fall silent, and see how late that is known."""
        with self._topics(shards=8) as config:
            dying = RawMembers(members=2_000, first=members, generation_id=1, session_timeout_ms=SESSION_MS)
            living = RawMembers(members=members, generation_id=1, session_timeout_ms=60_000)
            self._feed(config, living, rounds=1)
            run(queries.start(self._spark, config, availableNow=True))
            query = queries.start(self._spark, config, processingTime=f"{config.trigger_interval_ms} milliseconds")
            with Ticker(self._broker.bootstrap, config.source, run=new_run(), interval_ms=config.tick_interval_ms):
                until(lambda: len(query.recentProgress) >= 3)
                self._feed(config, dying, interval_ms=seconds * 400, rounds=1)
                self._feed(config, living, interval_ms=round(members / rate * 1000), seconds=seconds)
                until(lambda: self._expired(config) >= dying.members)
            query.stop()
            return self._steady_figures(config, query)

    def _expired(self, config: JobConfig) -> int:
        return sum(1 for _ in read_topic(self._broker.bootstrap, config.topics["expirations"]))

    def _steady_figures(self, config: JobConfig, query: StreamingQuery) -> dict[str, Any]:
        loaded = [batch for batch in query.recentProgress if batch["numInputRows"] > 10_000]
        durations = sorted(batch["durationMs"]["triggerExecution"] for batch in loaded)
        late = sorted(
            record.append_ms - msgspec.json.decode(record.value or b"")["deadline_ms"]
            for record in read_topic(self._broker.bootstrap, config.topics["expirations"])
        )
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


class Run(msgspec.Struct):
    """Hold how fast a query was that ran to its end."""

    per_s: int
    best_per_s: int


def run(query: StreamingQuery) -> Run:
    """Run a query to its end, and tell its rows a second by the time of its batches."""
    query.awaitTermination()
    batches = [batch for batch in query.recentProgress if batch["sources"][0]["numInputRows"] > 1_000]
    rows = [batch["sources"][0]["numInputRows"] for batch in batches]
    spent = [batch["durationMs"]["triggerExecution"] / 1000 for batch in batches]
    return Run(round(sum(rows) / sum(spent)), round(max(n / s for n, s in zip(rows, spent, strict=True))))


def until(condition: Any) -> None:
    """Wait for a condition."""
    end = time.monotonic() + 300
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("nothing moves any more")
        time.sleep(0.25)


if __name__ == "__main__":
    main()
