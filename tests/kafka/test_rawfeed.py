"""The raw feeder writes what an ordinary client would have written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import encode_varint

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.partitioner import murmur2, partition_of
from support.rawfeed import RawFeed, RawMembers
from support.record_batch import Compression, encode_batch, varint

# Inputs and hashes of Kafka's own UtilsTest.testMurmur2, hashes as signed 32-bit integers.
JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

pairs = st.lists(st.tuples(st.binary(max_size=300), st.binary(max_size=300)), min_size=1, max_size=200)


@pytest.mark.parametrize(("data", "signed"), JAVA_VECTORS.items())
def test_murmur2_has_javas_values(data: bytes, signed: int) -> None:
    """The hash is the one that Java clients compute."""
    assert murmur2(data) == signed & 0xFFFFFFFF


@given(st.binary(max_size=64), st.integers(1, 100))
def test_partition_is_that_of_the_ordinary_client(key: bytes, partitions: int) -> None:
    """Any key goes where kafka-python would send it."""
    assert murmur2(key) == murmur2_of_kafka_python(key) & 0xFFFFFFFF
    assert partition_of(key, partitions) == (murmur2_of_kafka_python(key) & 0x7FFFFFFF) % partitions


@given(st.integers(-(2**40), 2**40) | st.integers(8180, 8200))
def test_varint_is_kafkas(number: int) -> None:
    """Every integer is encoded as kafka-python does, on both sides of the prepared ones."""
    expected = bytearray()
    encode_varint(number, expected.append)
    assert varint(number) == expected


@given(pairs, st.sampled_from(["none", "lz4"]))
def test_batch_is_read_by_the_ordinary_client(records: list[tuple[bytes, bytes]], compression: Compression) -> None:
    """Keys and values of any lengths come back in order, with offsets, time, and a right checksum."""
    batch = DefaultRecordBatch(memoryview(encode_batch(records, 1234, compression)))
    assert batch.validate_crc()
    read = list(batch)
    assert [(record.key, record.value) for record in read] == records
    assert [record.offset for record in read] == list(range(len(records)))
    assert {record.timestamp for record in read} == {1234}


@pytest.mark.kafka
@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_every_member_beats_once_a_round(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], compression: Compression
) -> None:
    """After two rounds each member has two heartbeats in the partition of its group, stamped by the broker."""
    topic = topics("raw")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(topic, 3, {"message.timestamp.type": "LogAppendTime"})])
    who = RawMembers(members=1500, groups=40, session_timeout_ms=7000, first=990)
    with RawFeed(kafka_broker.bootstrap, topic, who, compression=compression, records_per_batch=100) as feed:
        assert feed.run(rounds=2).records == 3000
    records = list(read_topic(kafka_broker.bootstrap, topic))
    events = [decode_event(record.value) for record in records]
    assert Counter(event.member_id for event in events) == {f"member-{n}": 2 for n in range(990, 2490)}
    assert {event.session_timeout_ms for event in events} == {7000}
    assert len({event.group_id for event in events}) == 40
    for record, event in zip(records, events, strict=True):
        assert record.key == event.group_id.encode()
        assert record.partition == partition_of(record.key, 3)


@pytest.mark.kafka
def test_number_of_records_is_exact(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A fixed number of records is kept to the record, across rounds and within a batch."""
    topic = topics("raw")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(topic, 2, {"message.timestamp.type": "LogAppendTime"})])
    with RawFeed(kafka_broker.bootstrap, topic, RawMembers(members=100, groups=7), records_per_batch=30) as feed:
        assert feed.run(records=257).records == 257
        assert feed.run(records=3, interval_ms=1).records == 3
        with pytest.raises(ValueError, match="an endless run"):
            feed.run()
    assert sum(1 for _ in read_topic(kafka_broker.bootstrap, topic)) == 260


@pytest.mark.kafka
@pytest.mark.proof
def test_missing_topic_and_lost_broker_are_told() -> None:
    """Neither is waited for: a topic that is not there is refused, a broker that dies ends the run with its address."""
    with EmbeddedKafka() as broker:
        with pytest.raises(KafkaRefusedError, match="has no topic nowhere"):
            RawFeed(broker.bootstrap, "nowhere", RawMembers(members=1))
        ensure_topics(broker.bootstrap, [TopicSpec("t", 1, {})])
        with RawFeed(broker.bootstrap, "t", RawMembers(members=10)) as feed:
            feed.run(rounds=1)
            broker.kill()
            with pytest.raises(KafkaUnreachableError, match=broker.bootstrap):
                feed.run(rounds=100)
