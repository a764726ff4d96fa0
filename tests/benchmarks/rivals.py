"""The same topic and members through what else Spark has, and Kafka's own timer beside our wheel: `make rivals`.

Each rival has the settings that were the fastest for it here, and writes what it expires to a sink that does nothing,
which is kinder than Kafka; heartwheel writes to Kafka. All read the same heartbeats of one topic, in turns, three
times, as a JVM is at its fastest only after minutes, each time for at most `--limit` seconds; the fastest time counts,
and heartwheel is held against it in the same JVM. A rate is by the time of the batches. `sessions()` and
`session_window` read the same keys and times from Parquet files, too, as both spend most of their time on a topic's
JSON: so the operators are compared. Each must end with as many live keys as there are members. Tables on stderr, JSON
on stdout.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyspark
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType, StringType, StructField, StructType

from benchmarks.job_bench import warm_up
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.runtime.driver import query as queries
from heartwheel.engine.runtime.driver.session import end_session
from heartwheel.engine.runtime.map.frames import bound_batches
from heartwheel.engine.sessions.api import METRICS, sessions
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from support.bench import PARTITIONS, Session, finished, run_of, say
from support.rawfeed import RawMembers
from timing_wheel import TimingWheel

SESSION_MS: Final = 600_000
RECORDS_MAX: Final = 6_000_000
"""Most records of a batch for heartwheel, which is faster with it than with half of it, and for `session_window`, which
is not slower."""

TASKS: Final = 2
"""Tasks of the state side, one a core: with one, `session_window` reads a fifth less."""

TURNS: Final = 3
OURS: Final = "heartwheel, into Kafka"
SESSIONS: Final = "sessions()"
WINDOW: Final = "session_window"
ALONE: Final = "keys alone"
FILES: Final = ", Parquet"
"""The end of the name of what reads files in place of the topic."""

NO_DATA: Final = "spark.sql.streaming.noDataMicroBatches.enabled"

STORES: Final = "org.apache.spark.sql.execution.streaming.state."
HDFS: Final = "HDFSBackedStateStoreProvider"
ROCKSDB: Final = "RocksDBStateStoreProvider"
PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_FOR_ROCKSDB: Final = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
"""RocksDB's snapshots go through Hadoop's own local file system; all else has ours (`runtime.driver.session`)."""

BOOTSTRAP: Final = "kafka.bootstrap.servers"
TIMER: Final = Path(__file__).with_name("system_timer.scala")
OUT: Final = StructType([StructField("key", StringType()), StructField("deadline_ms", LongType())])


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=24_000_000)
    parser.add_argument("--limit", type=int, default=60, help="most seconds of each rival")
    parser.add_argument("--jvms", nargs="*", choices=JVMS, default=list(JVMS), help="whose rivals; all if left out")
    parser.add_argument("--only", nargs="*", help="which rivals of them, by the first words of their names")
    parser.add_argument("--timers", type=int, default=1_000_000, help="timers of Kafka's wheel and of ours; 0: none")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heartwheel-rivals-") as folder, EmbeddedKafka(heap="512m") as broker:
        jobs = measure(broker, Path(folder), chosen)
    wheels = beside_kafka(chosen.timers) if chosen.timers else {}
    for name, figures in wheels.items():
        say(f"{chosen.timers:,} timers, {name}, a second", figures)
    sys.stdout.write(json.dumps({"members": chosen.members, "heartbeats/s": jobs, "wheels": wheels}) + "\n")


def measure(broker: EmbeddedKafka, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    """Feed one topic, and let heartwheel and its rivals read it in turns, in JVMs that have read much before."""
    figures: dict[str, Any] = {}
    session = Session(broker, folder, records_max=RECORDS_MAX, shuffle_partitions=TASKS)
    warm_up(session)
    with session.topics(shards=8) as config:
        who = RawMembers(members=chosen.members, generation_id=1, session_timeout_ms=SESSION_MS)
        session.feed(config, who, rounds=1)
        session.drain(config)
        session.feed(config, who, records=chosen.records)
        for name in chosen.jvms:
            conf, rivals = JVMS[name]
            if chosen.only:
                rivals = {name: rival for name, rival in rivals.items() if name.startswith(tuple(chosen.only))}
            if conf:
                end_session(session.spark, 60)
                session = Session(broker, folder / name, records_max=RECORDS_MAX, shuffle_partitions=TASKS, conf=conf)
            figures[name] = beside(session, config, rivals, chosen)
            say(f"{chosen.members:,} members, the JVM of {name}, heartbeats/s", figures[name])
    session.close()
    return figures


def beside(
    session: Session, config: JobConfig, rivals: Mapping[str, Rival], chosen: argparse.Namespace
) -> dict[str, Any]:
    """Measure heartwheel, the source and some rivals in one JVM, in turns, as it compiles meanwhile what it runs."""
    measured: dict[str, Callable[[], int]] = {
        OURS: lambda: session.drain_again(config).per_s,
        "source alone": lambda: session.source(config).per_s,
        **{name: partial(rate_of, rival, session, config, chosen) for name, rival in rivals.items()},
    }
    turns = [{name: rate() for name, rate in measured.items()} for _ in range(TURNS)]
    rates = {name: max(turn[name] for turn in turns) for name in measured}
    ratios: dict[str, float] = {}
    for name in rivals:
        if not rates[name] or name.startswith((SESSIONS, ALONE)):
            continue
        by = {"heartwheel": OURS, SESSIONS: SESSIONS}
        if name.endswith(FILES):
            by = {SESSIONS: SESSIONS + FILES}
        ratios |= {f"{short} / {name}": round(rates[our] / rates[name], 2) for short, our in by.items() if our in rates}
    return {**rates, **ratios}


def rate_of(rival: Rival, session: Session, config: JobConfig, chosen: argparse.Namespace) -> int:
    """Measure a rival with its state store, heartbeats a second; whoever comes next has Spark's own again."""
    # Without it no query with timers ends by itself: it has batches without rows for ever.
    store = {PROVIDER: STORES + rival.store, CHANGELOG: str(rival.changelog).lower(), NO_DATA: "false"}
    for name, value in store.items():
        session.spark.conf.set(name, value)
    bound_batches(session.spark, by_bytes=not rival.short)
    try:
        query = limited(session, rival.frame(session, config), chosen.limit)
    finally:
        bound_batches(session.spark, by_bytes=True)
        for name in store:
            session.spark.conf.unset(name)
    if rival.keys is not None and query.lastProgress is not None and rival.keys(query.lastProgress) != chosen.members:
        raise SystemExit(f"error: {rival.keys(query.lastProgress)} keys are alive, of {chosen.members}")
    return run_of(query).per_s


def limited(session: Session, frame: DataFrame, limit_s: int) -> StreamingQuery:
    """Run a frame into a sink that does nothing, for so long at most."""
    query = (
        frame.writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(session.folder / f"rival-{time.monotonic_ns()}"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(limit_s)
    query.stop()
    return query


def keyed(session: Session, config: JobConfig, records_max: int) -> DataFrame:
    """Read group and member of each heartbeat in the JVM, as one key, with the consumers' properties of our job."""
    return with_key(queries.read_topic(session.spark, dataclasses.replace(config, records_max=records_max)))


def keyed_plainly(session: Session, config: JobConfig) -> DataFrame:
    """Read the same with consumers as Spark has them by itself: polls of 500 records."""
    given = queries.source_options(dataclasses.replace(config, records_max=RECORDS_MAX))
    plain = {name: value for name, value in given.items() if name == BOOTSTRAP or not name.startswith("kafka.")}
    source = session.spark.readStream.format("kafka").options(**plain).load()
    return with_key(source.select("value", F.unix_millis("timestamp").alias("append_ms")))


def with_key(source: DataFrame) -> DataFrame:
    """Read group and member of each heartbeat, as one key."""
    parts = F.from_json(F.col("value").cast("string"), "group_id string, member_id string").alias("parts")
    return source.select(parts, "append_ms").select(
        F.concat_ws("/", "parts.group_id", "parts.member_id").alias("key"), "append_ms"
    )


def keys_of_topic(session: Session, config: JobConfig) -> DataFrame:
    """Read key and time of each heartbeat from the topic."""
    return with_time(keyed(session, config, RECORDS_MAX))


def keys_of_plain_topic(session: Session, config: JobConfig) -> DataFrame:
    """Read the same as people write it first."""
    return with_time(keyed_plainly(session, config))


def with_time(keyed: DataFrame) -> DataFrame:
    """Read key and time of each heartbeat."""
    return keyed.select("key", F.timestamp_millis("append_ms").alias("at"))


def keys_of_files(session: Session, config: JobConfig) -> DataFrame:
    """Read the same from Parquet files: those of a batch have the heartbeats that a batch of the topic has."""
    folder = str(session.folder / "keys")
    rows = keys_of_topic(session, config)
    if not Path(folder).exists():
        written = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}-written")
        finished(written.trigger(availableNow=True).start(folder))
    return session.spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", PARTITIONS).parquet(folder)


def windows(rows: DataFrame) -> DataFrame:
    """Spark's own sessions: a window a member, closed by the watermark."""
    window = F.session_window("at", f"{SESSION_MS // 1000} seconds")
    return rows.withWatermark("at", "1 second").groupBy(window, "key").agg(F.count("*").alias("heartbeats"))


def ours(rows: DataFrame) -> DataFrame:
    """`heartwheel.sessions` on the same DataFrame."""
    return sessions(rows, key="key", timeout=f"{SESSION_MS // 1000} seconds", time="at", shards=8)


def windows_alive(progress: StreamingQueryProgress) -> int:
    """Return how many windows are open after a batch."""
    return progress.stateOperators[0].numRowsTotal


def sessions_alive(progress: StreamingQueryProgress) -> int:
    """Return how many keys have a session after a batch."""
    return int(progress.observedMetrics[METRICS]["alive"])


def with_pandas_state(session: Session, config: JobConfig) -> DataFrame:
    """`applyInPandasWithState` with a state and a timeout a member: how the manual shows sessions."""

    def beat(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            (last,) = state.get
            state.remove()
            yield pd.DataFrame({"key": [key[0]], "deadline_ms": [last + SESSION_MS]})
            return
        newest = max(int(frame["append_ms"].max()) for frame in frames)
        state.update((max(newest, state.get[0] if state.exists else 0),))
        state.setTimeoutDuration(SESSION_MS)
        yield pd.DataFrame({"key": [], "deadline_ms": []})

    grouped = keyed(session, config, 50_000).groupBy("key")
    return grouped.applyInPandasWithState(beat, OUT, "last long", "append", GroupStateTimeout.ProcessingTimeTimeout)


class LazyTimer(StatefulProcessor):
    """A timer a member that is armed anew only when it fires too early: a heartbeat is one write of a value."""

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._handle = handle
        self._last = handle.getValueState("last", StructType([StructField("ms", LongType())]))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Note the newest heartbeat."""
        newest = max(row["append_ms"] for row in rows)
        if not self._last.exists():
            self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + SESSION_MS)
        self._last.update((newest,))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """Expire the member, unless it has beaten since."""
        deadline_ms = self._last.get()[0] + SESSION_MS
        if deadline_ms > timerValues.getCurrentProcessingTimeInMs():
            self._handle.registerTimer(deadline_ms)
            return iter(())
        self._last.clear()
        return iter([Row(key=key[0], deadline_ms=deadline_ms)])

    def close(self) -> None:
        """Do nothing."""


def with_state_processor(session: Session, config: JobConfig) -> DataFrame:
    """`transformWithState` with a lazy timer a member."""
    grouped = keyed(session, config, 20_000).groupBy("key")
    return grouped.transformWithState(
        statefulProcessor=LazyTimer(), outputStructType=OUT, outputMode="Append", timeMode="ProcessingTime"
    )


class Rival(NamedTuple):
    """What else Spark has.

    Args:
        frame: makes its expirations.
        store: the state store with which it is fastest.
        changelog: whether RocksDB writes one, in place of whole files.
        short: whether Spark need not add up the bytes of what it sends to Python, as all rows are short.
        keys: tells how many keys are alive after a batch, if Spark's progress says it.
    """

    frame: Callable[[Session, JobConfig], DataFrame]
    store: str = HDFS
    changelog: bool = False
    short: bool = False
    keys: Callable[[StreamingQueryProgress], int] | None = None


def _windows(rows: Callable[[Session, JobConfig], DataFrame], **store: Any) -> Rival:
    return Rival(lambda session, config: windows(rows(session, config)), keys=windows_alive, **store)


def _ours(rows: Callable[[Session, JobConfig], DataFrame]) -> Rival:
    return Rival(lambda session, config: ours(rows(session, config)), short=True, keys=sessions_alive)


JVMS: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, Rival]]]] = {
    "memory": (
        {},
        {
            ALONE: Rival(keys_of_topic),
            SESSIONS: _ours(keys_of_topic),
            WINDOW: _windows(keys_of_topic),
            ALONE + FILES: Rival(keys_of_files),
            SESSIONS + FILES: _ours(keys_of_files),
            WINDOW + FILES: _windows(keys_of_files),
            "session_window, consumers by Spark": _windows(keys_of_plain_topic),
        },
    ),
    "rocksdb": (
        _FOR_ROCKSDB,
        {"session_window, changelog": _windows(keys_of_topic, store=ROCKSDB, changelog=True)},
    ),
    "python": (
        _FOR_ROCKSDB,
        {
            SESSIONS: _ours(keys_of_topic),
            "applyInPandasWithState": Rival(with_pandas_state),
            "transformWithState on RocksDB": Rival(with_state_processor, ROCKSDB),
        },
    ),
}
"""Settings of Spark, and rivals, by JVM: after rivals with a state a member in Python all others are slower in one."""


def beside_kafka(timers: int) -> dict[str, dict[str, float]]:
    """Measure Kafka's `SystemTimer` and our wheel: file, move to a later deadline, and fire them all."""
    jars = [*fetch_jars("broker"), *(Path(pyspark.__file__).parent / "jars").glob("scala-*.jar")]
    done = subprocess.run(
        ["java", "-Xmx3g", "-cp", ":".join(map(str, jars)), "scala.tools.nsc.MainGenericRunner", "-usejavacp",
         "-nc", str(TIMER), str(timers)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {"Kafka's SystemTimer": json.loads(done.stdout.splitlines()[-1]), "the timing wheel": _wheel(timers)}


def _wheel(timers: int) -> dict[str, float]:
    handles, spread = np.arange(timers), np.random.default_rng(7).integers(0, 3_000, timers)
    wheel = TimingWheel(capacity=timers)
    begun = time.perf_counter()
    wheel.file(handles, 45_000 + spread)
    filed = time.perf_counter()
    wheel.touch(handles, 48_000 + spread)
    moved = time.perf_counter()
    fired = sum(len(wheel.advance(clock_ms)) for clock_ms in range(0, 60_000, 200))
    ended = time.perf_counter()
    assert fired == timers
    return {
        "file": round(timers / (filed - begun)),
        "move": round(timers / (moved - filed)),
        "fire": round(timers / (ended - moved)),
    }


if __name__ == "__main__":
    main()
