"""Topics are made as the engine needs them, and existing ones are compared, never changed."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Self

import pytest
from kafka.errors import InvalidReplicationFactorError

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, plain_errors
from heartwheel.kafka.clock import CLOCK_PROBE_KEY, broker_clock_offset_ms
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.topic_specs import TopicNames, TopicSpec, engine_topics, operations_topics
from heartwheel.kafka.topics import Difference, describe_topics, ensure_topics
from support.bombs import CODECS, MIB, blow_up, bomb

pytestmark = pytest.mark.kafka


def names_for(topics: Callable[[str], str]) -> TopicNames:
    """Name the topics for one test."""
    return TopicNames(**{name: topics(name) for name in TopicNames.__struct_fields__})


def test_missing_topics_are_made_once(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """The first call makes all six with append time, two of them compacted; the second finds nothing to do."""
    names = names_for(topics)
    specs = engine_topics(names, heartbeat_partitions=3)
    report = ensure_topics(kafka_broker.bootstrap, specs)
    assert set(report.created) == {spec.name for spec in specs}
    assert (report.missing, report.differences) == ((), ())
    states = describe_topics(kafka_broker.bootstrap, [spec.name for spec in specs])
    assert {state.settings["message.timestamp.type"] for state in states.values()} == {"LogAppendTime"}
    compacted = {name for name, state in states.items() if state.settings["cleanup.policy"] == "compact"}
    assert compacted == {names.status, names.job}
    assert states[names.heartbeats].partitions == 3
    assert states[names.heartbeats].replication_factor == 1
    assert ensure_topics(kafka_broker.bootstrap, specs) == type(report)()


def test_differences_come_as_data(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A topic that keeps create time, or the wrong things, is reported by setting; other settings are its owner's."""
    name = topics("heartbeats")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, {"cleanup.policy": "compact", "retention.ms": "1000"})])
    wanted = TopicSpec(name, 8, {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"})
    report = ensure_topics(kafka_broker.bootstrap, [wanted])
    assert report.differences == (
        Difference(name, "message.timestamp.type", "LogAppendTime", "CreateTime"),
        Difference(name, "cleanup.policy", "delete", "compact"),
    )


@pytest.mark.parametrize("codec", CODECS)
def test_p6_a_bomb_never_gets_into_a_topic_made_by_us(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], codec: str
) -> None:
    """P6: what a batch unpacks to counts against max.message.bytes (MESSAGE_TOO_LARGE); honest batches get in."""
    heartbeats, requests = (
        engine_topics(TopicNames(heartbeats=topics("h")), heartbeat_partitions=1)[0],
        operations_topics(topics("r"), partitions=1)[0],
    )
    ensure_topics(kafka_broker.bootstrap, [heartbeats, requests])
    for spec in (heartbeats, requests):
        with pytest.raises(KafkaRefusedError, match="error code 10"):
            blow_up(kafka_broker.bootstrap, spec.name, 0, bomb(codec, 8 * MIB))
        blow_up(kafka_broker.bootstrap, spec.name, 0, bomb(codec, MIB // 2))
        assert [record.value for record in read_topic(kafka_broker.bootstrap, spec.name)] == [bytes(MIB // 2)]


def test_p6_advice_comes_apart_from_what_is_wrong(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A topic whose broker does not look at what is packed is reported as advice; snappy hides little and is fine."""
    names = {kind: topics(kind) for kind in ("producer", "zstd", "snappy", "uncompressed")}
    stamped = {"message.timestamp.type": "LogAppendTime"}
    ensure_topics(
        kafka_broker.bootstrap,
        [TopicSpec(name, 1, stamped | {"compression.type": kind}) for kind, name in names.items()],
    )
    wanted = [TopicSpec(name, 1, stamped | {"compression.type": "uncompressed"}) for name in names.values()]
    report = ensure_topics(kafka_broker.bootstrap, wanted)
    assert report.differences == ()
    assert {(found.topic, found.wanted, found.found) for found in report.advice} == {
        (names["producer"], "uncompressed", "producer"),
        (names["zstd"], "uncompressed", "zstd"),
    }


@pytest.mark.parametrize(
    ("words", "refused_s", "given_up_s"),
    [
        ("All brokers are currently fenced", 10, None),
        ("All brokers are currently fenced", 1_000, 15),
        ("only 1 broker(s) are registered", 1_000, 0),
    ],
)
def test_a_broker_that_is_fenced_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, words: str, refused_s: float, given_up_s: float | None
) -> None:
    """After a stall a controller knows no broker for a moment; a cluster that is too small stays so."""
    admin = _Refusing(words, refused_s)
    monkeypatch.setattr("heartwheel.kafka.topics.admin_client", admin.opened)
    monkeypatch.setattr("heartwheel.kafka.topics.time", admin)  # a slow machine would give up before the last refusal
    if given_up_s is None:
        assert ensure_topics("nowhere:1", [TopicSpec("t", 1, {})]).created == ("t",)
        assert admin.now_s == pytest.approx(refused_s, abs=1)
        return
    with pytest.raises(KafkaRefusedError, match="InvalidReplicationFactorError"):
        ensure_topics("nowhere:1", [TopicSpec("t", 1, {})])
    assert admin.now_s == pytest.approx(given_up_s, abs=1)


class _Refusing:
    """An admin client whose cluster refuses to make topics at first, and the clock that it goes by."""

    def __init__(self, words: str, refused_s: float) -> None:
        self.now_s = 0.0
        self._words = words
        self._refused_s = refused_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    @contextlib.contextmanager
    def opened(self, bootstrap: str, _: object, *, doing: str, connect_timeout_ms: int) -> Iterator[Self]:
        assert connect_timeout_ms > 0
        with plain_errors(bootstrap, doing):
            yield self

    def describe_topics(self, _: list[str]) -> list[dict[str, object]]:
        return []

    def create_topics(self, *_: object, **__: object) -> None:
        if self.now_s < self._refused_s:
            raise InvalidReplicationFactorError(self._words)


def test_nothing_is_made_unless_asked(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """With `create=False` a missing topic is only reported."""
    name = topics("absent")
    report = ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, {})], create=False)
    assert report.missing == (name,)
    assert describe_topics(kafka_broker.bootstrap, [name]) == {}


def test_refused_setting_is_named_by_class_only(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A refusal says which one, without the client's dump of the whole request."""
    with pytest.raises(KafkaRefusedError, match=r"refused to create the topics: InvalidConfigurationError$"):
        ensure_topics(kafka_broker.bootstrap, [TopicSpec(topics("t"), 1, {"cleanup.policy": "shred"})])


def test_nobody_there_is_one_plain_error() -> None:
    """An address where nobody listens is reported as that, with a hint."""
    with pytest.raises(KafkaUnreachableError, match=r"no Kafka answers at 127.0.0.1:1 ") as caught:
        describe_topics("127.0.0.1:1", ["t"], connect_timeout_ms=200)
    assert str(caught.value.hint).startswith("is the broker up")


def test_clock_offset_on_one_machine_is_within_its_error(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """Broker and test share a clock, so the offset is zero within the error that it states; it leaves tombstones."""
    spec = TopicSpec(topics("status"), 1, {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"})
    ensure_topics(kafka_broker.bootstrap, [spec])
    offset = broker_clock_offset_ms(kafka_broker.bootstrap, spec.name)
    assert abs(offset.offset_ms) <= offset.error_ms
    records = list(read_topic(kafka_broker.bootstrap, spec.name))
    assert {(record.key, record.value) for record in records} == {(CLOCK_PROBE_KEY, None)}


def test_clock_needs_append_time(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """A topic with create time would echo our own clock; it is refused."""
    spec = TopicSpec(topics("status"), 1, {"message.timestamp.type": "CreateTime"})
    ensure_topics(kafka_broker.bootstrap, [spec])
    with pytest.raises(KafkaRefusedError, match="keeps create time"):
        broker_clock_offset_ms(kafka_broker.bootstrap, spec.name)


def test_missing_topic_is_told_by_the_reader(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Reading back a topic that is not there is an error, not an empty log."""
    with pytest.raises(KafkaRefusedError, match="has no topic"):
        list(itertools.islice(read_topic(kafka_broker.bootstrap, topics("absent")), 1))
