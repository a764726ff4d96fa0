"""All members fall silent at once: how late is the last verdict, who takes how much memory, what does the page do?

Run it as `PYTHONPATH=tests python -m benchmarks.silence [--members 1000000]`: progress and tables on stderr, JSON on
stdout. `heartwheel run` and `heartwheel dashboard` are processes of their own, as people start them. All members come,
beat, and beat once more as fast as the broker takes it; then nobody does. Times are the broker's: from the last
member's deadline to the append time of the last verdict. Whatever does not come is counted as missing, and the report
is written all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import reader
from heartwheel.kafka.readback import read_topic
from heartwheel.wire.job import JobRow
from kafka import TopicPartition
from support.background import Background
from support.bench import say
from support.job import Job, Topics, ended
from support.processes import command_of, descendants_of, memory_mib
from support.rawfeed import RawFeed, RawMembers
from support.watched_reader import Asked, counted, first_line, process

VERDICTS: Final = ("expirations", "triggers")
STALL_S_MAX: Final = 120
"""So long nothing may be written before the rest counts as missing."""

COME_S_MAX: Final = 900
"""So long all members may take to be known."""

PARTITIONS: Final = 4


class _Row(msgspec.Struct):
    deadline_ms: int


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--presence", action="store_true", help="members of presence groups, three verdicts each")
    parser.add_argument("--session", type=int, default=45, help="session timeout, s")
    parser.add_argument("--every", type=float, default=10, help="seconds between two heartbeats of a member")
    parser.add_argument("--heap", default="4GiB", help="spark.driver_memory")
    parser.add_argument("--set", action="append", default=[], help="further settings of the job")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heartwheel-silence-") as folder, EmbeddedKafka(heap="1g") as broker:
        report = measure(broker, Path(folder), chosen)
    say(f"{chosen.members:,} members silent at once", report)
    sys.stdout.write(json.dumps(report) + "\n")


def measure(broker: EmbeddedKafka, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Run job and dashboard, and let everybody fall silent."""
    topics = Topics(broker.bootstrap, lambda name: f"silence-{name}", partitions=PARTITIONS)
    who = RawMembers(
        members=chosen.members,
        groups=chosen.groups,
        session_timeout_ms=chosen.session * 1000,
        generation_id=-1 if chosen.presence else 1,
    )
    job = Job(
        topics,
        folder / "checkpoint",
        f"engine.shards={max(8, chosen.members // 60_000)}",
        "engine.trigger_interval=400ms",
        "engine.members_per_shard_max=10000000",
        "engine.output_per_batch_max=10000000",
        "spark.shuffle_partitions=2",
        f"spark.driver_memory={chosen.heap}",
        "spark.conf.spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=4",
        *chosen.set,
    )
    board = ["-m", "heartwheel", "dashboard", "--port", "0", *(word for flag in job.flags for word in ("--set", flag))]
    with (
        RawFeed(broker.bootstrap, topics.names["heartbeats"], who) as feed,
        (folder / "dashboard.log").open("w") as log,
        process(board, log) as page,
        ended(job.start()),
    ):
        base = first_line(page).rstrip("/")
        _tell("the job starts")
        job.until_live()
        with Memory({"page": page.pid, "broker": broker.pid or 0, "job": job.pid}) as memory:
            _tell(f"{who.members:,} members come and beat")
            _let_come(feed, topics, job, who.members, round(chosen.every * 1000))
            with Asked({path: f"{base}{path}" for path in ("/api/now", "/api/expirations?limit=100")}) as asked:
                feed.run(rounds=1)
                _tell("everybody is silent")
                report = _verdicts(broker.bootstrap, topics, who)
                report |= _page(f"{base}/metrics", report["expired"])
            report |= asked.figures()
        report |= memory.figures()
        report["job's code at its end"] = job.stop()
    return report


def _let_come(feed: RawFeed, topics: Topics, job: Job, members: int, interval_ms: int) -> None:
    """Let members beat until the job knows all of them: whoever waited in silence would be expired."""
    end_s = time.monotonic() + COME_S_MAX
    known = 0
    while known < members:
        if not job.running or time.monotonic() > end_s:
            raise RuntimeError(f"the job knows {known:,} of {members:,} members\n{job.log[-3000:]}")
        feed.run(rounds=1, interval_ms=interval_ms)
        known = _members(topics)
        _tell(f"{known:,} of {members:,} members are known")


def _verdicts(bootstrap: str, topics: Topics, who: RawMembers) -> dict[str, Any]:
    """Wait for the verdicts, and tell how late they came."""
    moved_s, before, first = time.monotonic(), 0, 0
    with reader(bootstrap) as consumer:
        places = {
            name: [TopicPartition(topics.names[name], number) for number in range(PARTITIONS)] for name in VERDICTS
        }
        while True:
            counts = {name: sum(consumer.end_offsets(parts).values()) for name, parts in places.items()}
            first = first or sum(counts.values()) - counts["expirations"]  # those who came to presence groups
            if sum(counts.values()) != before:
                moved_s, before = time.monotonic(), sum(counts.values())
                _tell(f"{counts['expirations']:,} of {who.members:,} expired")
            whole = counts["expirations"] >= who.members
            patience_s = _SETTLED_S if whole else STALL_S_MAX + who.session_timeout_ms / 1000
            if time.monotonic() - moved_s > patience_s:
                break
            time.sleep(0.5)
    decode = msgspec.json.Decoder(_Row).decode
    rows = [
        (decode(record.value or b"").deadline_ms, record.append_ms)
        for record in read_topic(bootstrap, topics.names["expirations"])
    ]
    deadlines, appends = [row[0] for row in rows] or [0], [row[1] for row in rows] or [0]
    last_ms = max([*appends, *(record.append_ms for record in read_topic(bootstrap, topics.names["triggers"]))])
    crowd = [
        batch for row in topics.rows("job") if (batch := msgspec.convert(row, JobRow).last_batch) and batch.expired
    ]
    by_batch = {batch.batch_id: batch for batch in crowd}.values()
    took_s = sum(batch.duration_ms for batch in by_batch) / 1000
    written = sum(counts.values()) - first
    return {
        "expired": len(rows),
        "missing": who.members - len(rows),
        "verdicts": written,
        "deadlines, first to last, s": round((max(deadlines) - min(deadlines)) / 1000, 2),
        "last deadline to last verdict, s": round((last_ms - max(deadlines)) / 1000, 2),
        "first deadline to last verdict, s": round((last_ms - min(deadlines)) / 1000, 2),
        "verdicts/s, first deadline to last verdict": round(written / max(0.001, (last_ms - min(deadlines)) / 1000)),
        "verdicts/s, by the time of their batches": round(written / took_s) if took_s else 0,
        "batches with expirations": len(by_batch),
        "longest of them, ms": max((batch.duration_ms for batch in by_batch), default=0),
    }


_SETTLED_S: Final = 3
"""So long nothing may follow the last expiration before its triggers are taken for whole."""


def _page(address: str, expired: int) -> dict[str, Any]:
    """Wait until the page has counted all expirations."""
    began_s = time.monotonic()
    while (found := counted(address)) < expired and time.monotonic() - began_s < STALL_S_MAX:
        time.sleep(0.25)
    return {"page has counted": found, "page, s after the last verdict was seen": round(time.monotonic() - began_s, 1)}


def _members(topics: Topics) -> int:
    newest = {row["shard"]: row["members"] for row in topics.rows("status")}
    return sum(newest.values())


def _tell(words: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {words}\n")
    sys.stderr.flush()


class Memory(Background):
    """The resident memory of processes and of what the job has started, once a second.

    Args:
        roots: process ids by name; below the job are its JVM and its Python workers.
    """

    def __init__(self, roots: dict[str, int]) -> None:
        super().__init__(daemon=True)
        self._roots = roots
        self.most_mib: dict[str, int] = {}

    def _run(self) -> None:
        while not self._over.wait(1.0):
            sums = dict.fromkeys((*self._roots, "JVM", "Python workers"), 0)
            for name, pid in self._roots.items():
                sums[name] += _resident(pid)
            for pid in descendants_of(self._roots["job"]):
                is_jvm = "java" in command_of(pid).partition(" ")[0]
                sums["JVM" if is_jvm else "Python workers"] += _resident(pid)
            for name, mib in sums.items():
                self.most_mib[name] = max(mib, self.most_mib.get(name, 0))

    def figures(self) -> dict[str, int]:
        """Give the most of each."""
        return {f"resident, most, {name}, MiB": mib for name, mib in self.most_mib.items()}


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, KeyError):  # it has ended meanwhile
        return memory_mib(pid)[0]
    return 0


if __name__ == "__main__":
    main()
