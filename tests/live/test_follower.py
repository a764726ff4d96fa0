"""The follower on a real broker: over its absence without a gap and without a double, past whatever is no row."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.sender import Sender
from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.wire.verdict_rows import ExpirationRow
from support.job import PATIENCE_S, Topics, settings_of, wait_for
from support.output_rows import expired, status

pytestmark = pytest.mark.kafka


class Heard:
    """Collect what a follower hands on."""

    def __init__(self) -> None:
        self.rows: list[TopicRow] = []
        self.links: list[bool] = []

    def take(self, rows: Sequence[TopicRow]) -> None:
        """Take rows."""
        assert rows
        self.rows += rows

    def members(self) -> list[str]:
        """Name the members of the expirations that were read."""
        return [each.row.member_id for each in list(self.rows) if isinstance(each.row, ExpirationRow)]


def send(topics: Topics, topic: str, *values: bytes | None) -> None:
    """Append values to a topic, and wait until they are in the log."""
    sender = Sender(topics.bootstrap, topics.names[topic], linger_ms=0)
    for value in values:
        sender.send(b"key", value)
    sender.close()
    assert (sender.unknown, sum(sender.errors.values())) == (0, 0)


def rows(*members: str) -> list[bytes]:
    """Encode expirations of some members."""
    return [msgspec.json.encode(expired("g", member)) for member in members]


@pytest.mark.proof
def test_nothing_is_lost_or_doubled_over_a_restart_of_the_broker(topics: Callable[[str], str]) -> None:
    """A broker that goes away and comes back is noticed both times, and reading goes on at the very next offset."""
    heard = Heard()
    with EmbeddedKafka() as broker:
        ours = Topics(broker.bootstrap, topics, partitions=1)
        with Follower(ours.settings(), since_ms=0, on_rows=heard.take, on_link=heard.links.append) as follower:
            send(ours, "expirations", *rows("a", "b"))
            wait_for(lambda: heard.members() == ["a", "b"], "the first rows")
            wait_for(lambda: heard.links == [True], "answers to all that the follower asks")
            broker.stop()
            wait_for(lambda: heard.links == [True, False], "the follower to notice that the broker is gone")
            assert not follower.linked
            broker.start()
            send(ours, "expirations", *rows("c", "d"))
            wait_for(lambda: len(heard.members()) >= 4, "the rows after the restart")
            wait_for(lambda: heard.links == [True, False, True], "the link to be reported")
    assert heard.members() == ["a", "b", "c", "d"]
    assert [each.offset for each in heard.rows] == [0, 1, 2, 3]
    assert follower.failure is None


def test_what_is_no_row_is_passed_over(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Tombstones and undecodable values are skipped, the latter counted; fields of a newer release do no harm."""
    ours, heard = Topics(kafka_broker.bootstrap, topics, partitions=1), Heard()
    newer = msgspec.json.encode(msgspec.to_builtins(expired("g", "newer")) | {"mood": "bad"})
    send(ours, "expirations", b"{}", None, b"\xff\x00", newer)
    send(ours, "status", None, msgspec.json.encode(status(0)))
    with Follower(ours.settings(), since_ms=0, on_rows=heard.take) as follower:
        wait_for(lambda: len(heard.rows) == 2, "two rows")
    assert heard.members() == ["newer"]
    assert {each.source for each in heard.rows} == {OutputTopic.EXPIRATIONS, OutputTopic.STATUS}
    assert follower.undecodable == 2


def test_it_begins_where_it_is_asked_to(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Without a time it begins with what comes now, yet reads what is compacted; a tail has its bound."""
    ours, late, tail = Topics(kafka_broker.bootstrap, topics, partitions=1), Heard(), Heard()
    send(ours, "expirations", *rows("a", "b", "c"))
    send(ours, "status", msgspec.json.encode(status(0)))
    settings = ours.settings()
    with (
        Follower(settings, on_rows=late.take),
        Follower(settings, since_ms=0, tail_max=2, sources=[OutputTopic.EXPIRATIONS], on_rows=tail.take) as follower,
    ):
        wait_for(lambda: late.rows and len(tail.rows) == 2, "the status, and the tail")
        send(ours, "expirations", *rows("d"))
        wait_for(lambda: late.members() and len(tail.rows) == 3, "what came since")
    assert late.members() == ["d"]
    assert tail.members() == ["b", "c", "d"]
    assert follower.skipped == 1


def test_topics_and_brokers_may_come_later(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Topics that are made while it waits are read from their start; nobody must be started in an order."""
    names = {part: topics(part) for part in ("heartbeats", "expirations", "triggers", "status", "rejects", "job")}
    heard, linked = Heard(), threading.Event()

    missing = settings_of(kafka_broker.bootstrap, names)
    with Follower(missing, on_rows=heard.take, on_link=lambda _: linked.set()):
        assert linked.wait(60)
        ours = Topics(kafka_broker.bootstrap, names.__getitem__, partitions=1)
        send(ours, "expirations", *rows("a"))
        wait_for(lambda: heard.members() == ["a"], "the first row of a new topic")


def test_a_listener_that_fails_ends_the_follower_aloud(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in who listens is logged and kept, and the link is said to be down: nothing goes on half blind."""
    ours, links = Topics(kafka_broker.bootstrap, topics, partitions=1), list[bool]()

    def fail(_told: Sequence[TopicRow]) -> None:
        raise ZeroDivisionError

    send(ours, "expirations", *rows("a"))
    with Follower(ours.settings(), since_ms=0, on_rows=fail, on_link=links.append) as follower:
        wait_for(lambda: follower.failure, "the follower to end")
    assert isinstance(follower.failure, ZeroDivisionError)
    assert links[-1:] in ([], [False])
    assert "has ended" in caplog.text


def test_it_finishes_with_all_that_is_there(kafka_broker: EmbeddedKafka, topics: Callable[[str], str]) -> None:
    """Asked to finish, it reads to the ends of the topics first, however little it has read by then."""
    ours, heard = Topics(kafka_broker.bootstrap, topics, partitions=2), Heard()
    names = [f"m{number}" for number in range(3_000)]
    send(ours, "expirations", *rows(*names))
    follower = Follower(ours.settings(), sources=[OutputTopic.EXPIRATIONS], since_ms=0, on_rows=heard.take)
    follower.start()
    follower.finish()
    assert follower.failure is None
    assert sorted(heard.members()) == sorted(names)


def test_how_things_stand_is_told_while_verdicts_are_still_taken(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str]
) -> None:
    """A crowd of expirations that takes long to hand on does not hold back the rows of status that come meanwhile."""
    ours, heard = Topics(kafka_broker.bootstrap, topics, partitions=1), Heard()
    begun, sent, told = threading.Event(), threading.Event(), threading.Event()
    count, known = 45_000, list[int]()

    def take(found: Sequence[TopicRow]) -> None:
        if found[0].source is OutputTopic.STATUS:
            known.append(len(heard.rows))
            told.set()
            return
        heard.take(found)
        begun.set()
        sent.wait(PATIENCE_S)
        if not told.is_set():
            time.sleep(1)

    send(ours, "expirations", *rows(*(f"m{number}" for number in range(count))))
    with Follower(ours.settings(), since_ms=0, on_rows=take) as follower:
        assert begun.wait(PATIENCE_S)
        send(ours, "status", msgspec.json.encode(status()))
        sent.set()
        assert told.wait(PATIENCE_S)
    assert known[0] < count
    assert follower.failure is None
