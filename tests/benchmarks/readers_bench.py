"""What the readers of the topics bear while all members fall silent at once, and come back: page, `top`, `/metrics`.

Run it as `PYTHONPATH=tests python tests/benchmarks/readers_bench.py [--members 1000000]`: tables on stderr, JSON on
stdout. Real shards, half of loaded and half of presence groups, say what they write when all their members come, expire
and come back, and it is sent into the topics at `--rate` verdicts a second, without Spark. Each reader is a process of
its own, which is asked four times a second meanwhile. Broker, feeder and reader share the cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.base.percentiles import percentile
from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.wire.status import StatusRow
from support.bench import say
from support.mass_expiry import batches, fallen
from support.output_rows import job
from support.processes import cpu_of, memory_mib
from support.produce import EncodedBatch, ProduceConnection
from support.rawfeed import RawMembers
from support.record_batch import encode_batch
from support.watched_reader import Asked, Stream, counted, first_line, get, process

PARTITIONS: Final = 4
SHARD_MEMBERS: Final = 60_000
SESSION_MS: Final = 45_000
WAIT_S: Final = 0.25
TELL_S: Final = 0.4
QUIET_S_MAX: Final = 600

_TOPICS: Final = ("heartbeats", "expirations", "triggers", "status", "rejects", "job")

_WATCH: Final = """
import sys, time
from heartwheel.settings import load_settings
from heartwheel.readers.top.watch import Watch
with Watch(load_settings(None, {}, sys.argv[1:]).settings) as watch:
    while True:
        began = time.perf_counter()
        frame = watch.frame()
        took = time.perf_counter() - began
        window = watch._picture.window
        print(window.newest_seq, watch._picture.triggers_total, round(took * 1e3, 1), len(window.rows), flush=True)
        for _ in range(4):
            watch.at_risk()
            time.sleep(0.25)
"""

_JOB_METRICS: Final = """
import sys, threading
from heartwheel.readers.metrics.job_metrics import job_metrics
from heartwheel.settings import load_settings
settings = load_settings(None, {}, sys.argv[1:]).settings
with job_metrics(settings):
    print(f"http://127.0.0.1:{settings.metrics.port}", flush=True)
    threading.Event().wait()
"""


class Verdicts:
    """All batches of a mass expiry: all come, all are expired, all come back.

    Args:
        members: how many fall silent.
    """

    def __init__(self, members: int, group_members: int) -> None:
        phases: tuple[list[tuple[str, EncodedBatch]], ...] = ([], [], [])
        self.rows = dict.fromkeys(("expirations", "triggers"), 0)
        self.status: list[StatusRow] = []
        shards = max(2, -(-members // SHARD_MEMBERS))
        each = members // shards
        for shard in range(shards):
            who = RawMembers(
                members=each,
                groups=max(1, each // group_members),
                first=shard * each,
                generation_id=1 if shard % 2 else -1,
                session_timeout_ms=SESSION_MS,
                group_name=f"group-{shard}",
            )
            written = fallen(shard, who, now_ms=wall_ms())
            self.status.append(written.status)
            for phase, rows in zip(phases, (written.came, written.gone, written.back), strict=True):
                of_topic = {topic: [row for row in rows if row.topic == topic] for topic in self.rows}
                for topic, some in of_topic.items():
                    self.rows[topic] += len(some)
                phase.extend(_mixed({topic: list(batches(some, PARTITIONS)) for topic, some in of_topic.items()}))
        self.batches = [batch for phase in phases for batch in phase]

    @property
    def total(self) -> int:
        """How many verdicts there are."""
        return sum(self.rows.values())


def _mixed(lines: Mapping[str, list[EncodedBatch]]) -> list[tuple[str, EncodedBatch]]:
    """Put the batches of topics side by side, as one batch of the job writes them at once."""
    placed = [(at / len(line), topic, batch) for topic, line in lines.items() for at, batch in enumerate(line)]
    return [(topic, batch) for _, topic, batch in sorted(placed, key=lambda each: each[:2])]


class Topics:
    """Topics that one reader reads, which the job's and the shards' own rows come to in real time."""

    def __init__(self, bootstrap: str, number: int, status: list[StatusRow]) -> None:
        self._names = {name: f"{name}-{number}" for name in _TOPICS}
        specs = engine_topics(TopicNames(**self._names), heartbeat_partitions=1, output_partitions=PARTITIONS)
        ensure_topics(bootstrap, specs, create=True)
        self._bootstrap, self._status = bootstrap, status
        self._ended = threading.Event()
        self.settings = [
            f"kafka.bootstrap_servers={bootstrap}",
            f"engine.shards={len(status)}",
            *(f"kafka.topics.{name}={real}" for name, real in self._names.items()),
        ]

    def connection(self, topic: str) -> ProduceConnection:
        """Connect to a topic."""
        return ProduceConnection(self._bootstrap, self._names[topic].encode())

    @contextlib.contextmanager
    def living(self) -> Iterator[None]:
        """Tell how shards and job stand, a few times a second, as a job does with every batch."""
        thread = threading.Thread(target=self._tell)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _tell(self) -> None:
        lines = self.connection("status"), self.connection("job")
        while not self._ended.wait(TELL_S):
            now_ms = wall_ms()
            fresh = [msgspec.structs.replace(row, batch_ms=now_ms, clock_ms=now_ms) for row in self._status]
            rows = [
                [(b"%d" % row.shard, msgspec.json.encode(row)) for row in fresh],
                [(b"job", _job(now_ms, len(fresh)))],
            ]
            for line, records in zip(lines, rows, strict=True):
                line.send(EncodedBatch(0, list(range(len(records))), encode_batch(records, now_ms, "lz4")))
                line.settle()
        for line in lines:
            line.close()

    def send(self, verdicts: Verdicts, rate: int) -> float:
        """Send all verdicts at an even pace; return how long it took, s."""
        lines = {topic: self.connection(topic) for topic in verdicts.rows}
        began_s, sent = time.perf_counter(), 0
        for topic, batch in verdicts.batches:
            time.sleep(max(0.0, began_s + sent / rate - time.perf_counter()))
            lines[topic].send(batch)
            sent += len(batch.numbers)
        for line in lines.values():
            line.settle()
            line.close()
        return time.perf_counter() - began_s


def _job(now_ms: int, shards: int) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(job(now_ms), shards=shards, trigger_interval_ms=400))


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=200_000)
    parser.add_argument("--group", type=int, default=1_000, help="members of a group")
    parser.add_argument("--rate", type=int, default=100_000, help="verdicts a second")
    parser.add_argument("--reader", choices=READERS, action="append", help="which readers; all by default")
    chosen = parser.parse_args()
    verdicts = Verdicts(chosen.members, chosen.group)
    report: dict[str, Any] = {"members": chosen.members, "verdicts": verdicts.rows, "readers": {}}
    with EmbeddedKafka(heap="512m") as broker, tempfile.TemporaryDirectory(prefix="heartwheel-readers-") as folder:
        for number, name in enumerate(chosen.reader or READERS):
            topics = Topics(broker.bootstrap, number, verdicts.status)
            with (Path(folder) / name).open("w+") as log:
                found = READERS[name](topics, verdicts, chosen.rate, log)
            report["readers"][name] = found
            say(f"{name}: {verdicts.total:,} verdicts at {chosen.rate:,}/s", found)
    sys.stdout.write(json.dumps(report) + "\n")


def metrics(words: list[str], topics: Topics, verdicts: Verdicts, rate: int, log: Any) -> dict[str, Any]:
    """Measure a reader that counts: a dashboard, or the metrics of a job."""
    is_page = "dashboard" in words
    with topics.living(), process(words, log) as reader:
        base = first_line(reader).rstrip("/")
        paths = ["/metrics", "/api/now", "/api/expirations?limit=100"] if is_page else ["/metrics"]
        wait(
            lambda: (
                b"heartwheel_kafka_up 1" in get(f"{base}/metrics") and b"heartwheel_members{" in get(f"{base}/metrics")
            )
        )
        stream = Stream(f"{base}/api/stream") if is_page else None
        with Asked({path: f"{base}{path}" for path in paths}) as asked:
            figures = flood(reader.pid, topics, verdicts, rate, partial(counted, f"{base}/metrics"))
        return figures | asked.figures() | ({"stream, bytes": stream.bytes} if stream else {})


def top(topics: Topics, verdicts: Verdicts, rate: int, log: Any) -> dict[str, Any]:
    """Measure what `heartwheel top` looks at: the same picture, a frame of it every second."""
    with topics.living(), process(["-c", _WATCH, *topics.settings], log) as reader:
        first_line(reader)
        seen: list[list[float]] = [[0, 0, 0, 0]]

        def watch() -> None:
            seen.extend([float(word) for word in line.split()] for line in reader.stdout or ())

        threading.Thread(target=watch, daemon=True).start()
        time.sleep(2)
        figures = flood(reader.pid, topics, verdicts, rate, lambda: int(seen[-1][0]))
    took = [line[2] for line in seen[1:]]
    return figures | {
        "frame p50, ms": percentile(took, 0.5),
        "frame, longest, ms": percentile(took, 1),
        "rows kept": int(seen[-1][3]),
    }


def flood(pid: int, topics: Topics, verdicts: Verdicts, rate: int, taken: Callable[[], int]) -> dict[str, Any]:
    """Send all verdicts to a reader, and wait until it has taken them."""
    before, spent_s, began_s = memory_mib(pid), cpu_of(pid), time.perf_counter()
    sent_s = topics.send(verdicts, rate)
    behind = verdicts.rows["expirations"] - taken()
    wait(lambda: taken() >= verdicts.rows["expirations"])
    took_s, used_s = time.perf_counter() - began_s, cpu_of(pid) - spent_s
    after = memory_mib(pid)
    return {
        "sent, verdicts/s": round(verdicts.total / sent_s),
        "taken, verdicts/s": round(verdicts.total / took_s),
        "expirations behind when all were sent": behind,
        "behind, s": round(took_s - sent_s, 1),
        "core-us a verdict": round(used_s / verdicts.total * 1e6, 1),
        "resident before, MiB": before[0],
        "resident after, MiB": after[0],
        "resident, most, MiB": after[1],
    }


def wait(condition: Callable[[], Any]) -> None:
    """Wait for a condition."""
    end_s = time.monotonic() + QUIET_S_MAX
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"nothing came of it in {QUIET_S_MAX} s")
        time.sleep(WAIT_S)


def page(topics: Topics, verdicts: Verdicts, rate: int, log: Any) -> dict[str, Any]:
    """Measure `heartwheel dashboard`."""
    words = [
        "-m",
        "heartwheel",
        "dashboard",
        "--port",
        "0",
        *(word for one in topics.settings for word in ("--set", one)),
    ]
    return metrics(words, topics, verdicts, rate, log)


def job_metrics(topics: Topics, verdicts: Verdicts, rate: int, log: Any) -> dict[str, Any]:
    """Measure the follower and the server of `metrics.port`, in a process without a job."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return metrics(["-c", _JOB_METRICS, *topics.settings, f"metrics.port={port}"], topics, verdicts, rate, log)


READERS: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {"page": page, "top": top, "job's metrics": job_metrics}


if __name__ == "__main__":
    main()
