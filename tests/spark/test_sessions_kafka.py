"""`sessions` on a real Kafka: a quiet partition with ticks and without, and a query that was stopped."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions, tick
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from kafka import KafkaProducer
from support.background import Background
from support.job import PATIENCE_S, wait_for
from support.sink import Sink, started, stopped_for, until, until_batches

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TIMEOUT_S = 8
STOPPED_S = 12
QUIET = 2
"""The partition that has one event and no more."""


class Topic:
    """A topic of three partitions, and a producer for it.

    Args:
        bootstrap: the broker.
        name: the topic's.
    """

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.name = bootstrap, name
        ensure_topics(bootstrap, [TopicSpec(name, 3, {})])
        self._producer: Any = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=0)

    def send(self, events: Iterable[tuple[int, str, float]]) -> None:
        """Append events, each with its partition, device and time in epoch s, and wait until they are in the log."""
        for partition, device, at_s in events:
            value = json.dumps({"device": device}).encode()
            self._producer.send(self.name, value=value, partition=partition, timestamp_ms=round(at_s * 1000))
        self._producer.flush()

    def close(self) -> None:
        """End the producer."""
        self._producer.close()

    def read(self, spark: SparkSession) -> DataFrame:
        """Read the topic from its start as a stream, with the device of each record."""
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        records = source.option("subscribe", self.name).option("startingOffsets", "earliest").load()
        return records.withColumn("device", F.get_json_object(F.col("value").cast("string"), "$.device"))


class Beating(Background):
    """Devices that beat three times a second, whatever happens to the query.

    Args:
        topic: theirs.
        devices: each with its partition.
    """

    def __init__(self, topic: Topic, devices: dict[str, int]) -> None:
        super().__init__()
        self._topic = topic
        self._devices = devices

    def _run(self) -> None:
        while not self._over.wait(0.3):
            now_s = time.time()
            self._topic.send((partition, device, now_s) for device, partition in self._devices.items())


@pytest.fixture
def topic(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> Iterator[Topic]:
    """Give a topic of this test."""
    made = Topic(kafka_broker.bootstrap, topics("devices"))
    with contextlib.closing(made):
        yield made


@contextlib.contextmanager
def ticking(topic: Topic) -> Iterator[None]:
    """Run `heartwheel tick` for the length of a block."""
    words = ["tick", "--topic", topic.name, "--every", "500ms", "--bootstrap-servers", topic.bootstrap]
    process = subprocess.Popen([sys.executable, "-m", "heartwheel", *words])
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def figures(query: Any) -> dict[str, Any]:
    """Return the figures of the last batch."""
    found = (query.lastProgress or {"observedMetrics": {}})["observedMetrics"].get("heartwheel_sessions")
    return {} if found is None else dict(found.asDict())


def end_of(rows: Iterable[dict[str, Any]], base_s: float) -> dict[str, float]:
    """Return when each device was gone, in s after a base."""
    return {row["device"]: round(row["at"].timestamp() - base_s, 3) for row in rows}


def test_ticks_give_a_quiet_partition_a_time(spark: SparkSession, tmp_path: Path, topic: Topic) -> None:
    """Without ticks a quiet partition holds the clock back; with those of `heartwheel tick` all ends are known."""
    base_s = round(time.time()) - 60
    topic.send(
        [
            (QUIET, "quiet", base_s),
            (0, "dead", base_s),
            *((0, "a", base_s + second) for second in range(40)),
            *((1, "b", base_s + second) for second in range(40)),
            (1, "alive", base_s + 1),
        ]
    )
    # An hour: only ticks can help.
    silent = sessions(
        topic.read(spark),
        key="device",
        timeout=F.when(F.col("device") == "alive", 3600).otherwise(TIMEOUT_S),
        time="timestamp",
        ticks=tick.is_tick("value"),
        idle="1 hour",
    )
    sink = Sink()
    with started(silent, sink, tmp_path / "checkpoint") as query:
        until(query, lambda: figures(query).get("now_ms") == base_s * 1000, "the quiet partition's time")
        until_batches(query, 3)
        assert figures(query)["now_ms"] == base_s * 1000
        assert sink.rows("gone") == []
        with ticking(topic):
            until(query, lambda: len(sink.rows("gone")) == 4, "four devices that are gone")
            until_batches(query, 2)
    gone = sink.rows("gone")
    assert end_of(gone, base_s) == {
        "quiet": TIMEOUT_S,
        "dead": TIMEOUT_S,
        "a": 39 + TIMEOUT_S,
        "b": 39 + TIMEOUT_S,
    }
    assert {row["device"] for row in sink.rows("came")} == {"quiet", "dead", "a", "b", "alive"}
    assert {row["event"] for row in sink.rows()} == {"came", "gone"}


@pytest.mark.proof
def test_without_ticks_a_quiet_partition_is_left_out_once_it_is_idle(
    spark: SparkSession, tmp_path: Path, topic: Topic
) -> None:
    """Devices that fell silent end at their deadlines, those that beat in other partitions live on."""
    base_s = round(time.time())
    topic.send([(QUIET, "quiet", base_s), (0, "dead", base_s)])
    silent = sessions(topic.read(spark), key="device", timeout=f"{TIMEOUT_S} seconds", time="timestamp", idle="2s")
    sink = Sink()
    with Beating(topic, {"a": 0, "b": 1}), started(silent, sink, tmp_path / "checkpoint") as query:
        until(query, lambda: len(sink.rows("gone")) == 2, "two devices that are gone")
        beaten_ms = time.time() * 1000
        until(query, lambda: figures(query)["now_ms"] > beaten_ms, "a clock that the others' events move")
    assert end_of(sink.rows("gone"), base_s) == {"quiet": TIMEOUT_S, "dead": TIMEOUT_S}
    assert {row["device"] for row in sink.rows("came")} == {"quiet", "dead", "a", "b"}
    assert sink.rows("back") == []


@pytest.mark.proof
def test_a_stop_longer_than_the_timeout_ends_nobody(spark: SparkSession, tmp_path: Path, topic: Topic) -> None:
    """In both kinds of time, a query for each: all devices beat on while the queries are stopped."""
    devices = {"a": 0, "b": 1, "c": QUIET}
    given: dict[str, Any] = {"key": "device", "timeout": f"{TIMEOUT_S} seconds", "idle": "2s"}
    kinds = [(Sink(), tmp_path / kind, at) for kind, at in (("event", "timestamp"), ("processing", None))]

    @contextlib.contextmanager
    def both() -> Iterator[list[tuple[Any, Sink]]]:
        with contextlib.ExitStack() as stack:
            yield [
                (stack.enter_context(started(sessions(topic.read(spark), time=at, **given), sink, checkpoint)), sink)
                for sink, checkpoint, at in kinds
            ]

    with Beating(topic, devices):
        with both() as queries:
            for query, sink in queries:
                until(query, functools.partial(_came, sink, 3), "three devices")
                until_batches(query, 1)
        for _, checkpoint, _ in kinds:
            wait_for(functools.partial(stopped_for, checkpoint, STOPPED_S), "a stop that is longer than the timeout")
        stopped_ms = time.time() * 1000
        with both() as queries:
            for query, _ in queries:
                until(query, functools.partial(_has_read, query, stopped_ms), "all that was sent during the stop")
                until_batches(query, 3)
                assert figures(query)["alive"] == 3
    for sink, checkpoint, _ in kinds:
        assert [row["event"] for row in sink.rows()] == ["came"] * 3, checkpoint.name


def _came(sink: Sink, number: int) -> bool:
    return len(sink.rows("came")) == number


def _has_read(query: Any, until_ms: float) -> bool:
    return bool(figures(query).get("now_ms", 0) > until_ms)
