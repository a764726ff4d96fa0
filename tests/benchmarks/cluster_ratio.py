"""The same work by one process with two cores, and by a standalone cluster of two workers with a core each.

Run it as `PYTHONPATH=tests python -m benchmarks.cluster_ratio`, or as a part of `make scale`: a table
on stderr, JSON on stdout. Both are `heartwheel run` on topics of their own: a backlog, then a live load. Driver, master
and workers share the machine's cores with broker and feeder, so this is what a cluster costs, not what more machines
would bring. Figures are those that the job tells of its own batches.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.wire.job import BatchFigures, JobRow
from support.bench import Usage, remove_topics, say
from support.cluster import cluster, python_archive
from support.job import Job, Topics, ended
from support.rawfeed import RawFeed, RawMembers

BACKLOG_MIN: Final = 1_000
"""Batches of fewer records are no part of a backlog."""

WARM_BATCHES: Final = 2
"""The first batches of a backlog, in which members are new and a JVM has compiled nothing."""

_ONE: Final = "one process, two cores"
_TWO: Final = "two workers, a core each"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=200_000)
    parser.add_argument("--records", type=int, default=4_000_000, help="heartbeats of the backlog")
    parser.add_argument("--live", type=int, default=30, help="seconds of live load")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heartwheel-ratio-") as folder, EmbeddedKafka(heap="1g") as broker:
        report = ratio(broker, Path(folder), chosen.members, chosen.records, chosen.live)
    sys.stdout.write(json.dumps(report) + "\n")


def ratio(broker: EmbeddedKafka, folder: Path, members: int, records: int, live_s: int) -> dict[str, Any]:
    """Measure both, and what the cluster is of the one process.

    Args:
        broker: where their topics are made.
        folder: for checkpoints and logs.
        members: how many beat.
        records: of the backlog.
        live_s: how long a live load lasts, s.
    """
    found = {}
    for number, name in enumerate((_ONE, _TWO)):
        place = folder / f"ratio-{number}"
        place.mkdir()
        with _master(name, place) as settings:
            found[name] = _measure(broker, place, settings, members, records, live_s)
        shutil.rmtree(place, ignore_errors=True)
        say(f"{name}, {members:,} members", found[name])
    one, two = found[_ONE], found[_TWO]
    shares = {
        f"{figure}, cluster / process": round(two[figure] / one[figure], 2)
        for figure in ("backlog, heartbeats/s", "live batch p50, ms", "live, cores of the job")
        if one[figure]
    }
    say("cluster / process", shares)
    return {**found, **shares}


@contextmanager
def _master(name: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """Run the cluster if one is wanted, and say how a job gets to it."""
    if name == _ONE:
        yield ("spark.master=local[2]", "spark.driver_memory=3GiB")
        return
    archive = python_archive(folder)
    with cluster(folder / "cluster", worker_memory="2000m") as made:
        yield (
            f"spark.master={made.address}",
            f"spark.auth_secret=file:{made.secret}",
            "spark.driver_memory=1GiB",
            "spark.executor_python=environment/bin/python",
            f"spark.conf.spark.archives={archive}#environment",
            "spark.conf.spark.driver.host=127.0.0.1",
            "spark.conf.spark.executor.memory=1500m",
            "spark.conf.spark.executor.cores=1",
        )


def _measure(
    broker: EmbeddedKafka, folder: Path, settings: tuple[str, ...], members: int, records: int, live_s: int
) -> dict[str, Any]:
    topics = Topics(broker.bootstrap, lambda name: f"{folder.name}-{name}", partitions=4)
    who = RawMembers(members=members, generation_id=1, session_timeout_ms=1_800_000)
    job = Job(
        topics,
        folder / "checkpoint",
        *settings,
        "checkpoint.shared=true",
        "spark.shuffle_partitions=2",
        "spark.conf.spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=4",
        "engine.trigger_interval=400ms",
        f"engine.shards={max(8, members // 60_000)}",
    )
    with RawFeed(broker.bootstrap, topics.names["heartbeats"], who) as feed:
        feed.run(records=members + records)
        usage = Usage()
        with ended(job.start()):
            job.until_live()
            caught_up = _batches(topics)
            spent = usage.seconds()
            usage = Usage()
            feed.run(seconds=live_s, interval_ms=3_000)
            cores = usage.cores()
            batches = _batches(topics)
            job.stop()
    remove_topics(broker.bootstrap, topics.names.values())
    full = [each for each in caught_up.values() if each.records > BACKLOG_MIN]
    backlog = full[min(WARM_BATCHES, len(full) - 1) :]
    live = [each.duration_ms for number, each in batches.items() if number not in caught_up]
    live = live[len(live) // 4 :]  # the code of a small batch is compiled by then
    took_s = sum(each.duration_ms for each in backlog) / 1000
    return {
        "backlog, heartbeats/s": round(sum(each.records for each in backlog) / took_s) if took_s else 0,
        "backlog, batches counted": len(backlog),
        "start and backlog, core-s of the job": round(spent["JVM"] + spent["workers"], 1),
        "live, heartbeats/s": round(members / 3),
        "live batch p50, ms": percentile(live, 0.5),
        "live batch p99, ms": percentile(live, 0.99),
        "live, cores of the job": round(cores["JVM"] + cores["workers"], 2),
    }


def _batches(topics: Topics) -> dict[int, BatchFigures]:
    rows = (msgspec.convert(row, JobRow) for row in topics.rows("job"))
    return {row.last_batch.batch_id: row.last_batch for row in rows if row.last_batch is not None}


if __name__ == "__main__":
    main()
