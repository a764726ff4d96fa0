"""What benchmarks of the job share: one session on a real broker, fresh topics for each measurement, and figures."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.engine.heartbeats.config import JobConfig, job_config
from heartwheel.engine.heartbeats.plugin import HeartbeatPlugin
from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.driver.job import start_query
from heartwheel.engine.runtime.driver.session import session_conf, start_session
from heartwheel.engine.shard.block_store import FOLDER
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, engine_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.settings import Settings, load_settings
from support.cores import cpu_s
from support.processes import command_of, descendants_of
from support.rawfeed import RawFeed, RawMembers

PARTITIONS: Final = 4

RECORDS_MAX: Final = 1_500_000
"""Most heartbeats of a batch, where members are few."""

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Run(msgspec.Struct):
    """How fast a query was that ran to its end, by the time of its batches."""

    records: int
    per_s: int
    best_per_s: int


class Session:
    """One Spark session that all measurements of a benchmark share.

    Args:
        folder: where checkpoints go.
        records_max: most heartbeats a batch.
        flags: further settings, such as `engine.trigger_interval=1s`.
        conf: further settings of Spark.
        shuffle_partitions: tasks of the state side; two, as in a new checkpoint of many shards, if left out.
    """

    def __init__(
        self,
        broker: EmbeddedKafka,
        folder: Path,
        *,
        records_max: int,
        flags: tuple[str, ...] = (),
        conf: Mapping[str, str] | None = None,
        shuffle_partitions: int = 2,
    ) -> None:
        self.broker, self.folder = broker, folder
        self._records_max, self._flags, self._shuffle = records_max, flags, shuffle_partitions
        self._runs = 0
        log = folder / "spark.log"
        wanted = session_conf(
            self.settings(shards=8), fetch_jars("spark"), shuffle_partitions=shuffle_partitions, log_file=log
        )
        # A heap that is touched before it is measured: the first batches would pay for its pages.
        wanted["spark.driver.extraJavaOptions"] += " -Xms4g -XX:+AlwaysPreTouch"
        self.spark = start_session({**wanted, **(conf or {})}, log_file=log)

    def close(self) -> None:
        """Stop Spark."""
        self.spark.stop()

    def settings(self, *, shards: int, **topics: str) -> Settings:
        """Make the configuration of one job; it may hold many members, and write many rows."""
        flags = [
            f"kafka.bootstrap_servers={self.broker.bootstrap}",
            f"engine.shards={shards}",
            "engine.members_per_shard_max=10000000",
            "engine.output_per_batch_max=10000000",
            "spark.master=local[2]",
            "spark.driver_memory=4GiB",
            *self._flags,
            *(f"kafka.topics.{name}={real}" for name, real in topics.items()),
        ]
        return load_settings(None, {}, flags).settings

    @contextmanager
    def topics(
        self,
        *,
        shards: int,
        partitions: int = PARTITIONS,
        runs: tuple[str, ...] = (),
        records_max: int | None = None,
        kept_ms: int | None = None,
    ) -> Iterator[JobConfig]:
        """Make topics, and give the configuration of a job on them with a checkpoint of its own; gone afterwards.

        Args:
            shards: of the job.
            partitions: of the heartbeat topic.
            runs: the known runs of the ticker.
            records_max: most heartbeats a batch; those of the session if left out.
            kept_ms: how long heartbeats are kept; as always if left out.
        """
        self._runs += 1
        kinds = ("heartbeats", "expirations", "triggers", "status", "rejects", "job")
        names = {name: f"{name}-{self._runs}" for name in kinds}
        specs = engine_topics(TopicNames(**names), heartbeat_partitions=partitions, output_partitions=PARTITIONS)
        if kept_ms is not None:
            settings = {**specs[0].settings, "retention.ms": str(kept_ms)}
            specs[0] = msgspec.structs.replace(specs[0], settings=settings)
        ensure_topics(self.broker.bootstrap, specs, create=True)
        config = job_config(self.settings(shards=shards, **names), shuffle_partitions=self._shuffle, runs=runs)
        checkpoint = str(self.folder / f"checkpoint-{self._runs}")
        try:
            records_max = self._records_max if records_max is None else records_max
            yield dataclasses.replace(config, checkpoint=checkpoint, records_max=records_max, counts=((partitions, 0),))
        finally:
            shutil.rmtree(checkpoint, ignore_errors=True)
            remove_topics(self.broker.bootstrap, names.values())

    @contextmanager
    def fed(self, config: JobConfig, who: RawMembers, *, per_batch: int = 4_000) -> Iterator[RawFeed]:
        """Encode the heartbeats of members once, for some runs."""
        with RawFeed(self.broker.bootstrap, config.source, who, records_per_batch=per_batch) as feed:
            yield feed

    def feed(self, config: JobConfig, who: RawMembers, *, per_batch: int = 4_000, **limits: Any) -> float:
        """Let members beat, see `RawFeed.run`; gives heartbeats a second."""
        with self.fed(config, who, per_batch=per_batch) as feed:
            return feed.run(**limits).records_per_s

    def drain(self, config: JobConfig) -> Run:
        """Run the job over all that is in its topic."""
        return finished(start_query(HeartbeatPlugin(), self.spark, config, availableNow=True))

    def drain_again(self, config: JobConfig) -> Run:
        """Run the job over all that its checkpoint has not read, from a copy of it: it can be done once more."""
        self._runs += 1
        copy = shutil.copytree(config.checkpoint, self.folder / f"checkpoint-{self._runs}")
        try:
            return self.drain(dataclasses.replace(config, checkpoint=str(copy)))
        finally:
            shutil.rmtree(copy)

    def pass_through(self, frame: DataFrame) -> Run:
        """Run a frame into a sink that does nothing."""
        self._runs += 1
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", str(self.folder / f"noop-{self._runs}"))
            .trigger(availableNow=True)
            .start()
        )
        return finished(query)

    def source(self, config: JobConfig) -> Run:
        """Read the topic into a sink that does nothing: no job on this machine can be faster."""
        return self.pass_through(queries.read_topic(self.spark, config))


def records_max_of(members: int) -> int:
    """Say how many heartbeats a batch may have: six of each member, as docs/cluster.md advises where they are many."""
    return max(RECORDS_MAX, 6 * members)


def finished(query: StreamingQuery, *, seconds: int = 1_200) -> Run:
    """Wait for a query's end."""
    if not query.awaitTermination(seconds):
        query.stop()
        raise TimeoutError(f"a query did not end in {seconds} s")
    return run_of(query)


def remove_topics(bootstrap: str, names: Iterable[str]) -> None:
    """Remove topics that nobody reads any more: a benchmark of many rows would fill the disk."""
    with admin_client(bootstrap) as admin:
        admin.delete_topics(list(names))


def run_of(query: StreamingQuery, *, records_min: int = 1_000) -> Run:
    """Count a query's records and the time of its batches, but for batches of few records."""
    batches = [batch for batch in query.recentProgress if batch["sources"][0]["numInputRows"] > records_min]
    rows = [batch["sources"][0]["numInputRows"] for batch in batches]
    spent = [batch["durationMs"]["triggerExecution"] / 1000 for batch in batches]
    if not rows:
        return Run(0, 0, 0)
    return Run(sum(rows), round(sum(rows) / sum(spent)), round(max(n / s for n, s in zip(rows, spent, strict=True))))


def lateness_of(broker: EmbeddedKafka, topic: str) -> list[int]:
    """Return how late each expiration is in Kafka, sorted, ms: by the broker's clock alone."""
    return sorted(
        record.append_ms - msgspec.json.decode(record.value or b"")["deadline_ms"]
        for record in read_topic(broker.bootstrap, topic)
    )


def until(condition: Callable[[], Any], *, seconds: float = 300) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("nothing moves any more")
        time.sleep(0.25)


def say(title: str, figures: Mapping[str, Any]) -> None:
    """Print one table on stderr."""
    sys.stderr.write(f"\n{title}\n")
    for name, value in figures.items():
        shown = f"{value:,}" if isinstance(value, (int, float)) else str(value)
        sys.stderr.write(f"  {name:38} {shown:>14}\n")
    sys.stderr.flush()


class Usage:
    """CPU seconds of broker, JVM, Python workers and this process since it was made, and what others used meanwhile."""

    def __init__(self) -> None:
        self._began_s, self._before = time.monotonic(), cpu_s(os.getpid())

    def cores(self) -> dict[str, float]:
        """Return how many cores each used on average; what is neither of these is `others`."""
        wall_s = time.monotonic() - self._began_s
        return {name: round(spent / wall_s, 2) for name, spent in self.seconds().items()}

    def seconds(self) -> dict[str, float]:
        """Return the CPU seconds of each."""
        after = cpu_s(os.getpid())
        spent = {name: after[name] - self._before[name] for name in after}
        spent["others"] = max(0.0, spent.pop("whole machine") - sum(value for name, value in spent.items()))
        return spent


def resident_mib() -> dict[str, int]:
    """Return the resident memory of the JVM and of all Python workers below this process, MiB."""
    found = {"JVM": 0, "workers": 0}
    for pid in descendants_of(os.getpid()):
        if (kind := _kind_of(pid)) in found:
            found[kind] += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES // 2**20
    return found


def state_bytes(checkpoint: str) -> tuple[int, int]:
    """Return the bytes of a checkpoint's whole state, and of what its last batch wrote into the state store."""
    whole, last = sum(file.stat().st_size for file in Path(checkpoint, FOLDER).glob("*/*")), 0
    for store in Path(checkpoint, "state").glob("*/*"):
        files = {file.name: file.stat().st_size for file in store.iterdir() if file.suffix in {".delta", ".snapshot"}}
        deltas = sorted((int(name.partition(".")[0]), size) for name, size in files.items() if name.endswith(".delta"))
        if deltas:
            last += deltas[-1][1]
            # Every batch writes each shard, so its newest delta is the shard whole.
            whole += max(size for _, size in deltas[-3:])
    return whole, last


def _kind_of(pid: int) -> str:
    command = command_of(pid)
    if "kafka.Kafka" in command:
        return "broker"
    if "java" in command.partition(" ")[0]:
        return "JVM"
    return "workers" if "daemon" in command else "other"
