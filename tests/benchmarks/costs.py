"""What a job costs by the number of its members: cores, memory, disk and bytes of Kafka; a table and JSON.

Run it as `PYTHONPATH=tests python -m benchmarks.costs [--members 0 1000 10000 100000 1000000] [--every 3]`. Each size
is a `heartwheel run` with the settings that it has by itself; from a million members on with a trigger interval of a
second and a shard for 60 thousand. All members beat once in `--every` seconds, and nobody falls silent. Broker and
feeder share the cores. docs/costs.md has the figures.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.bench import say
from support.cores import cpu_s
from support.job import Topics, wait_for
from support.processes import command_of, cpu_of, descendants_of, memory_mib
from support.rawfeed import RawFeed, RawMembers

MANY: Final = 1_000_000
MEMBERS_PER_SHARD: Final = 60_000
PARTITIONS: Final = 4
SESSION_MS: Final = 45_000
"""Session timeout of members, ms; four times the interval of heartbeats if that is longer."""
_MIB: Final = 2**20


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, nargs="*", default=[0, 1_000, 10_000, 100_000, MANY])
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two heartbeats of a member")
    parser.add_argument("--warm", type=int, default=60, help="seconds that a job runs before")
    parser.add_argument("--seconds", type=int, default=30, help="for which it is watched")
    parser.add_argument("--set", action="append", default=[], help="further settings of the job")
    chosen = parser.parse_args()
    report = []
    with tempfile.TemporaryDirectory(prefix="heartwheel-costs-") as folder, EmbeddedKafka(heap="512m") as broker:
        for members in chosen.members:
            row = measure(broker, Path(folder), members, chosen)
            say(f"{members:,} members, a heartbeat every {chosen.every:g} s", row)
            report.append({"members": members, **row})
    sys.stdout.write(json.dumps(report) + "\n")


def measure(broker: EmbeddedKafka, folder: Path, members: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Watch a job of so many members, and give what it costs."""
    topics = Topics(broker.bootstrap, lambda name: f"{name}-{members}", partitions=PARTITIONS)
    settings = [*(f"kafka.topics.{name}={real}" for name, real in topics.names.items()), "spark.master=local[2]"]
    if members >= MANY:
        settings += ["engine.trigger_interval=1s", f"engine.shards={members // MEMBERS_PER_SHARD}"]
    checkpoint = folder / f"checkpoint-{members}"
    with job(topics, checkpoint, [*settings, *chosen.set]) as process, beating(topics, members, chosen):
        time.sleep(chosen.warm)
        before, at_s = _counted(process.pid, broker, topics), time.monotonic()
        time.sleep(chosen.seconds)
        after, took_s = _counted(process.pid, broker, topics), time.monotonic() - at_s
        rates = {name: (after[name] - before[name]) / took_s for name in after}
        memory = _memory(process.pid)
        assert process.poll() is None, "the job has ended"
    assert not topics.expired(), "a member was expired though all beat"
    disk = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    return {
        **{name: round(rate, 2) for name, rate in rates.items()},
        **{f"memory of {who}, MiB": mib for who, mib in memory.items()},
        "checkpoint, MiB": round(disk / _MIB, 1),
    }


@contextlib.contextmanager
def job(topics: Topics, checkpoint: Path, settings: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a job for the length of a block, from when it is live."""
    command = [sys.executable, "-m", "heartwheel", "run", "--bootstrap-servers", topics.bootstrap]
    command += ["--checkpoint", str(checkpoint), *(word for setting in settings for word in ("--set", setting))]
    log = checkpoint.with_suffix(".log")
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    try:
        wait_for(lambda: process.poll() is not None or topics.clock_ms() > 0, "the job to go live")
        assert process.poll() is None, log.read_text()[-3000:]
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def beating(topics: Topics, members: int, chosen: argparse.Namespace) -> Iterator[None]:
    """Let members beat for the length of a block, from a thread."""
    if not members:
        yield
        return
    who = RawMembers(members=members, session_timeout_ms=max(SESSION_MS, round(chosen.every * 4000)), generation_id=1)
    per_batch = max(1, min(4_000, members // 100))
    over = threading.Event()

    def beat(feed: RawFeed) -> None:
        while not over.is_set():
            feed.run(interval_ms=round(chosen.every * 1000), rounds=1)

    with RawFeed(topics.bootstrap, topics.names["heartbeats"], who, records_per_batch=per_batch) as feed:
        thread = threading.Thread(target=beat, args=(feed,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _counted(pid: int, broker: EmbeddedKafka, topics: Topics) -> dict[str, float]:
    used = cpu_s(pid)
    counted = {f"cores of {who}": used[who] for who in ("JVM", "workers", "driver")}
    counted["cores of the broker"] = cpu_of(broker.pid or 0)
    beats = topics.names["heartbeats"]
    kib = {name: _bytes(broker, name) / 1024 for name in topics.names.values()}
    counted["heartbeats and ticks, KiB/s"] = kib.pop(beats)
    counted["written by the job, KiB/s"] = sum(kib.values())
    return counted


def _bytes(broker: EmbeddedKafka, topic: str) -> int:
    folders = (broker.dir / "data").glob(f"{topic}-[0-9]*")
    return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))


def _memory(pid: int) -> dict[str, int]:
    found = {"the driver's Python": memory_mib(pid)[0], "JVM": 0, "workers": 0}
    for child in descendants_of(pid):
        with contextlib.suppress(OSError):  # it has ended
            name = "JVM" if "java" in command_of(child).partition(" ")[0] else "workers"
            found[name] += memory_mib(child)[0]
    return found


if __name__ == "__main__":
    main()
