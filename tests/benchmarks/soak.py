"""Run the job for long, and tell whether anything grows that should not: a table on stderr, JSON on stdout.

Run it as `make soak`, or as `PYTHONPATH=tests python -m benchmarks.soak [--minutes 30] [--groups 200] [--members 25]`.
Broker, feeder and job run as they do beside a real cluster, each a process of its own; members pause, die, leave and
return all the time. The first third is warm-up. Then a line is fitted to each series, and the exit code is 1 if one
grows faster than its bound by more than its noise; a run below a quarter of an hour decides nothing.

The job's heap has a fixed size, so that what grows in the resident memory of the JVM is outside of it, and what grows
inside shows in the heap that is in use, which full collections tell; they also cost a batch now and then some time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support import watch
from support.job import Job, Topics, ended
from support.trend import Trend, trend_of

HEAP_MIB: Final = 768
SAMPLE_S: Final = 2.0
WARM_UP_SHARE: Final = 1 / 3
RETAINED: Final = ("spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions")
"""Spark remembers a thousand of each by default, and fills up for as many batches, which is no leak."""
TELL_MINUTES: Final = 5
DECIDES_FROM_MINUTES: Final = 15
"""A JVM compiles and a worker fills its caches for minutes: what grows in a shorter run says nothing."""


class Series(NamedTuple):
    """Describe one series: its name, its unit, and how many units it may grow in an hour."""

    name: str
    unit: str
    bound_per_hour: float


SERIES: Final = (
    Series(watch.HEAP, "MiB", 30),
    Series(watch.JVM, "MiB", 100),
    Series(watch.WORKERS, "MiB", 40),
    Series(watch.DRIVER, "MiB", 20),
    Series(watch.CHECKPOINT, "MiB", 20),
    Series(watch.FILES, "files", 60),
    Series(watch.STATE, "MiB", 10),
    Series(watch.BATCH, "ms", 200),
)
"""What is watched. A leak of 16 bytes a heartbeat (129 MiB an hour) or of a file a batch (3,600) exceeds the bounds.

The JVM's memory outside of the heap settles for longer than half an hour: it grew by 53 and by 65 MiB/h in the last
twenty of thirty minutes, by 15 MiB/h in the last forty of sixty.
"""


def soak(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, list[tuple[float, float]]], str]:
    """Run broker, feeder and job, and sample them until the time is up.

    Returns:
        The samples by series, and the job's last line.
    """
    with EmbeddedKafka(folder / "kafka", heap="512m", config={"log.retention.check.interval.ms": "30000"}) as broker:
        topics = Topics(broker.bootstrap, lambda name: f"{name}-soak", partitions=4)
        gc_log = folder / "gc.log"
        settings = (
            f"spark.driver_memory={HEAP_MIB}MiB",
            "spark.conf.spark.cleaner.periodicGC.interval=15s",
            *(f"spark.conf.{name}=100" for name in RETAINED),
            f"spark.conf.spark.driver.extraJavaOptions={watch.heap_options(HEAP_MIB, gc_log)}",
            "engine.shards=8",
            "engine.trigger_interval=1s",
        )
        with ended(Job(topics, folder / "checkpoint", *settings).start()) as job, _feeding(topics, arguments, folder):
            job.until_live()
            samples = watch.Samples(job, folder / "checkpoint", gc_log)
            begin = time.monotonic()
            told_minutes = 0.0
            while (minutes := (time.monotonic() - begin) / 60) < arguments.minutes:
                job.wait_for(lambda: True, "the job to run")
                samples.take()
                if minutes >= told_minutes:
                    sys.stderr.write(f"{minutes:3.0f} min  {_newest(samples.values)}\n")
                    told_minutes += TELL_MINUTES
                time.sleep(SAMPLE_S)
            job.stop()
            samples.finish(topics)
            return samples.values, [line for line in job.log.splitlines() if "batch " in line][-1]


def _newest(values: dict[str, list[tuple[float, float]]]) -> str:
    """Say where the series stand that can be seen while the job runs."""
    return ", ".join(
        f"{series.name} {values[series.name][-1][1]:,.0f}{'' if series.unit == 'files' else ' ' + series.unit}"
        for series in SERIES
        if values[series.name]
    )


@contextlib.contextmanager
def _feeding(topics: Topics, arguments: argparse.Namespace, folder: Path) -> Iterator[None]:
    flags = (
        f"kafka.topics.heartbeats={topics.names['heartbeats']}",
        f"feed.groups={arguments.groups}",
        f"feed.members_per_group={arguments.members}",
        "feed.kill_rate=0.2",
        "feed.return_share=1.0",
        "feed.garbage_share=0.001",
    )
    command = [
        *(sys.executable, "-m", "heartwheel", "feed", "--bootstrap-servers", topics.bootstrap),
        *("--truth", str(folder / "truth.jsonl"), "--duration", f"{arguments.minutes + 10}m"),
        *(word for flag in flags for word in ("--set", flag)),
    ]
    with (folder / "feed.log").open("wb") as log:
        feeder = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
            if feeder.poll() is not None:
                raise RuntimeError(f"the feeder ended: {(folder / 'feed.log').read_text()[-2000:]}")
        finally:
            feeder.kill()
            feeder.wait()


def judge(values: dict[str, list[tuple[float, float]]], minutes: float) -> list[dict[str, Any]]:
    """Fit each series after its warm-up.

    Returns:
        One row a series: last value, slope and noise an hour, bound, verdict.
    """
    rows = []
    decides = minutes >= DECIDES_FROM_MINUTES
    for series in SERIES:
        late = [(at, value) for at, value in values[series.name] if at > minutes * 60 * WARM_UP_SHARE]
        trend = trend_of([at for at, _ in late], [value for _, value in late]) if late else Trend(0, float("inf"))
        grows = trend.exceeds(series.bound_per_hour)
        rows.append(
            {
                "series": series.name,
                "unit": series.unit,
                "samples": len(late),
                "first": round(late[0][1], 1) if late else None,
                "last": round(late[-1][1], 1) if late else None,
                "per_hour": round(trend.per_hour, 1),
                "noise_per_hour": round(trend.noise_per_hour, 1) if late else None,
                "bound_per_hour": series.bound_per_hour,
                "ok": bool(late and late[-1][1]) and not (decides and grows),
                "decided": decides and (grows or trend.stays_below(series.bound_per_hour)),
            }
        )
    return rows


def verdict(row: dict[str, Any]) -> str:
    """Put the outcome of one series into a word or two."""
    if not row["last"]:
        return "NOT MEASURED"
    if not row["ok"]:
        return "GROWS"
    return "bounded" if row["decided"] else "undecided, run longer"


def main() -> int:
    """Run it and print the outcome.

    Returns:
        1 if something grows, or was never seen.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="how long, the warm-up included")
    parser.add_argument("--groups", type=int, default=200, help="groups that are fed")
    parser.add_argument("--members", type=int, default=25, help="members a group")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heartwheel-soak-") as folder:
        values, last = soak(arguments, Path(folder))
    rows = judge(values, arguments.minutes)
    sys.stderr.write(f"\n{last}\n\n{'series':26}{'last':>10}{'per hour':>12}{'noise':>10}{'bound':>8}  verdict\n")
    for row in rows:
        sys.stderr.write(
            f"{row['series']:26}{row['last']!s:>10}{row['per_hour']:>12,}{row['noise_per_hour']!s:>10}"
            f"{row['bound_per_hour']:>8}  {verdict(row)} ({row['unit']})\n"
        )
    sys.stdout.write(json.dumps({"minutes": arguments.minutes, "series": rows}) + "\n")
    return int(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
