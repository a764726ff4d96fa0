"""Whoever reads a topic stays alive: batches that unpack to too much are passed over, named, and read past."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.structs import TopicPartition

from heartwheel.kafka import bounded
from heartwheel.kafka.bounded import OversizedBatch
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import KafkaUnreachableError, reader
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.readers.live.scan import Scan, ScanBounds
from heartwheel.settings import load_settings
from heartwheel.wire.event_codec import encode_event
from support.bombs import CODECS, MIB, blow_up, bomb
from support.job import beats_of
from support.record_batch import encode_batch

pytestmark = pytest.mark.kafka

MEMORY_OF_A_READER = """
import resource, sys
from heartwheel.kafka.readback import read_topic
print(sum(1 for _ in read_topic(sys.argv[1], sys.argv[2])), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.fixture
def open_topic(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> str:
    """Make a topic that takes whatever a producer has packed."""
    name = topics("unprotected")
    # With the batches' own time, which is zero, retention would take them away under the test.
    settings = {"max.message.bytes": str(32 * MIB), "message.timestamp.type": "LogAppendTime"}
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, settings)])
    return name


def _send(broker: EmbeddedKafka, topic: str, value: bytes) -> None:
    blow_up(broker.bootstrap, topic, 0, encode_batch([(b"k", value)], 0, "lz4"))


@pytest.mark.parametrize("codec", CODECS)
def test_p6_a_reader_goes_on_after_a_bomb(
    kafka_broker: EmbeddedKafka, open_topic: str, codec: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: a batch of any codec that unpacks to too much is named in the log, and all others are read, once each."""
    _send(kafka_broker, open_topic, b"before")
    data = bomb(codec, 80 * MIB)
    blow_up(kafka_broker.bootstrap, open_topic, 0, data)
    _send(kafka_broker, open_topic, b"after")
    blow_up(kafka_broker.bootstrap, open_topic, 0, data)
    assert [(r.offset, r.value) for r in read_topic(kafka_broker.bootstrap, open_topic)] == [
        (0, b"before"),
        (2, b"after"),
    ]
    said = [record.getMessage() for record in caplog.records if "not read" in record.getMessage()]
    assert len(said) == 2
    assert f"{open_topic} partition 0 offsets 1 to 1: a record batch of {len(data):,} bytes that unpacks to" in said[0]
    assert "offsets 3 to 3" in said[1]


def test_p6_a_reader_says_what_it_has_not_read(kafka_broker: EmbeddedKafka, open_topic: str) -> None:
    """Whoever asks hears of each batch by place, size and append time, and the position moves on over it."""
    data = bomb("zstd", 80 * MIB)
    blow_up(kafka_broker.bootstrap, open_topic, 0, data)
    found: list[OversizedBatch] = []
    with reader(kafka_broker.bootstrap, on_oversized=found.append) as consumer:
        place = TopicPartition(open_topic, 0)
        consumer.assign([place])
        consumer.seek_to_beginning()
        while consumer.position(place) < 1:
            assert consumer.poll(500) == {}
    (batch,) = found
    assert batch._replace(append_ms=0) == OversizedBatch(open_topic, 0, 0, 0, 0, len(data))


def test_p6_the_memory_of_a_reader_is_bounded(kafka_broker: EmbeddedKafka, open_topic: str) -> None:
    """P6: 16 KiB that make 500 MiB, read in a process of its own: it needs no more than an allowed batch does."""
    command = [sys.executable, "-c", MEMORY_OF_A_READER, kafka_broker.bootstrap, open_topic]
    _send(kafka_broker, open_topic, b"x")
    _, before_kib = map(int, subprocess.check_output(command).split())
    data = bomb("zstd", 500 * MIB)
    assert len(data) < 20_000
    blow_up(kafka_broker.bootstrap, open_topic, 0, data)
    records, after_kib = map(int, subprocess.check_output(command, stderr=subprocess.DEVNULL).split())
    assert records == 1
    assert after_kib - before_kib < 2 * bounded.UNPACKED_BYTES_MAX // 1024


def test_p6_a_poll_is_bounded_by_bytes_too(
    kafka_broker: EmbeddedKafka, open_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: many batches that are each allowed do not come in one poll, and none of them is lost or comes twice."""
    monkeypatch.setattr(bounded, "POLL_BYTES_MAX", 5 * MIB)
    for _ in range(12):
        blow_up(kafka_broker.bootstrap, open_topic, 0, bomb("zstd", 2 * MIB))
    with reader(kafka_broker.bootstrap) as consumer:
        place = TopicPartition(open_topic, 0)
        consumer.assign([place])
        consumer.seek_to_beginning()
        polls: list[list[int]] = []
        while sum(map(len, polls)) < 12:
            polls.append([record.offset for record in consumer.poll(1_000).get(place, ())])
    assert [offset for poll in polls for offset in poll] == list(range(12))
    assert max(map(len, polls)) == 3


def test_p6_a_look_at_a_group_says_what_it_could_not_read(kafka_broker: EmbeddedKafka, open_topic: str) -> None:
    """P6: the dashboard's look at a group reads on after a bomb, and says that its answer lacks something."""
    events = beats_of("bomb", 2)
    for event in events:
        blow_up(kafka_broker.bootstrap, open_topic, 0, encode_batch([(b"bomb", encode_event(event))], 0))
        blow_up(kafka_broker.bootstrap, open_topic, 0, bomb("zstd", 80 * MIB))
    flags = [f"kafka.bootstrap_servers={kafka_broker.bootstrap}", f"kafka.topics.heartbeats={open_topic}"]
    scan = Scan(load_settings(None, {}, flags).settings.kafka, "bomb", ScanBounds())
    assert [beat.event for beat in scan.tail(100, 0)] == events
    assert scan.cut.startswith(f"Not read: {open_topic} partition 0 offsets 3 to 3: a record batch")


def test_records_of_a_batch_come_over_several_polls(kafka_broker: EmbeddedKafka, open_topic: str) -> None:
    """A batch that is longer than a poll may be is read to its end."""
    blow_up(kafka_broker.bootstrap, open_topic, 0, encode_batch([(b"k", b"%d" % i) for i in range(25_000)], 0, "lz4"))
    values = [record.value for record in read_topic(kafka_broker.bootstrap, open_topic)]
    assert values == [b"%d" % i for i in range(25_000)]


def test_a_partition_without_a_leader_is_named(
    kafka_broker: EmbeddedKafka, open_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library leaves such a partition out of its answer, and trips over that; people are told which one it is."""

    async def nothing_is_known(*_: object) -> dict[TopicPartition, object]:
        return {}

    monkeypatch.setattr(Fetcher, "_fetch_offsets_by_times_async", nothing_is_known)
    with pytest.raises(KafkaUnreachableError, match=f"partition 0 of {open_topic} has no leader"):
        list(read_topic(kafka_broker.bootstrap, open_topic))
