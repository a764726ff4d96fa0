"""Measure what members cost: state, checkpoint, heap and resident memory of a running job; a table and JSON.

Run it as `PYTHONPATH=tests python -m benchmarks.memory [--members 100000 1000000]`. Members are registered once, each
with a heartbeat of its own, and the job is watched through some live batches. A heap is what is left of it after a
collection, with a share of what the batches themselves need; docs/cluster.md uses the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support import watch
from support.job import Job, Topics, ended
from support.rawfeed import RawFeed, RawMembers

HEAP_MIB: Final = 4096
BATCHES: Final = 15
"""Live batches that are watched: more than the checkpoint keeps."""


def measure(broker: EmbeddedKafka, members: int, folder: Path) -> dict[str, float]:
    """Watch a job that holds so many members.

    Args:
        broker: where its topics are made.
        folder: for its checkpoint and logs.

    Returns:
        The median by series, and the highest resident memory of the JVM and of the workers, MiB.
    """
    topics = Topics(broker.bootstrap, lambda name: f"{name}-{members}", partitions=4)
    who = RawMembers(members=members, groups=max(1, members // 1_000), generation_id=1, session_timeout_ms=1_800_000)
    with RawFeed(broker.bootstrap, topics.names["heartbeats"], who) as feed:
        feed.run(rounds=1)
    gc_log = folder / f"gc-{members}.log"
    checkpoint = folder / f"checkpoint-{members}"
    settings = (
        f"engine.shards={max(8, members // 60_000)}",
        "engine.trigger_interval=2s",
        f"spark.driver_memory={HEAP_MIB}MiB",
        f"spark.conf.spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=4 {watch.heap_options(HEAP_MIB, gc_log)}",
    )
    with ended(Job(topics, checkpoint, *settings).start()) as job:
        job.until_live()
        samples = watch.Samples(job, checkpoint, gc_log)

        def watched() -> bool:
            samples.take()
            return len(samples.values[watch.BATCH]) >= BATCHES

        job.wait_for(watched, "live batches")
        job.stop()
        samples.finish(topics)
    return {
        **{name: _median(samples, name) for name in watch.NAMES},
        "JVM resident, most": max(value for _, value in samples.values[watch.JVM]),
        "Python workers resident, most": max(value for _, value in samples.values[watch.WORKERS]),
    }


def _median(samples: watch.Samples, name: str) -> float:
    values = sorted(value for at, value in samples.values[name] if at > 0)
    return values[len(values) // 2] if values else float("nan")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[100_000, 1_000_000], help="how many, each a run")
    arguments = parser.parse_args()
    report = []
    with tempfile.TemporaryDirectory(prefix="heartwheel-memory-") as folder, EmbeddedKafka(heap="512m") as broker:
        for members in arguments.members:
            started_s = time.monotonic()
            figures = measure(broker, members, Path(folder))
            report.append({"members": members, **{name: round(value, 1) for name, value in figures.items()}})
            sys.stderr.write(f"\n{members:,} members, in {time.monotonic() - started_s:.0f} s\n")
            sys.stderr.writelines(f"  {name:32}{value:>12,.1f}\n" for name, value in figures.items())
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
