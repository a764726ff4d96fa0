"""Delayed produce: a write is answered when every partition has its replicas, or names those that lack them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timing_wheel import REQUEST_TIMED_OUT, DelayedProduce, Outcome, Partitions, Position, Purgatory

PARTITIONS = ["topic-0", "topic-1"]


class Broker:
    """Drive a purgatory of produce requests as a replica manager does."""

    def __init__(self) -> None:
        self.partitions: Partitions[str] = Partitions()
        self.purgatory: Purgatory[str, DelayedProduce[str]] = Purgatory()
        self.answers: list[Mapping[str, str | None]] = []

    def produce(self, required: dict[str, int], timeout_ms: int = 1_000, now_ms: int = 0) -> DelayedProduce[str]:
        """Write, and wait for the replicas."""
        operation = DelayedProduce(required, self.partitions, timeout_ms, self.answers.append)
        self.purgatory.try_complete_else_watch(operation, operation.keys, now_ms)
        return operation

    def replicate(self, partition: str, offset: int) -> int:
        """Move a high watermark."""
        self.partitions.replicate(partition, Position(offset))
        return self.purgatory.check_and_complete(partition)


@pytest.fixture
def broker() -> Broker:
    """Make one that has no log yet."""
    return Broker()


@pytest.mark.parametrize(("offset", "completed"), [(9, 0), (10, 1), (11, 1)])
def test_it_completes_when_the_high_watermark_reaches_the_required_offset(
    broker: Broker, offset: int, completed: int
) -> None:
    """One offset before the required one it waits; at it and after it, it completes."""
    operation = broker.produce({"topic-0": 10})
    assert broker.replicate("topic-0", offset) == completed
    assert operation.ended == bool(completed)


def test_it_waits_for_every_partition(broker: Broker) -> None:
    """One partition out of two is not enough; the second completes it, and all is answered well."""
    operation = broker.produce({"topic-0": 10, "topic-1": 5})
    assert broker.replicate("topic-0", 10) == 0
    assert operation.lacking == {"topic-1": 5}
    assert broker.replicate("topic-1", 5) == 1
    assert broker.answers == [{"topic-0": None, "topic-1": None}]


def test_what_is_replicated_already_completes_at_once(broker: Broker) -> None:
    """A write below the high watermarks of all its partitions never waits."""
    broker.replicate("topic-0", 10)
    broker.replicate("topic-1", 5)
    operation = broker.produce({"topic-0": 10, "topic-1": 5})
    assert (operation.outcome, broker.purgatory.delayed) == (Outcome.COMPLETED, 0)


def test_at_its_deadline_it_names_the_partitions_that_lack(broker: Broker) -> None:
    """Timed out: the replicated partition is answered well, the other one is named with the offset it lacks."""
    operation = broker.produce({"topic-0": 10, "topic-1": 5}, timeout_ms=1_000)
    broker.replicate("topic-0", 10)
    assert broker.purgatory.advance(999) == []
    assert broker.purgatory.advance(1_000) == [operation]
    assert operation.lacking == {"topic-1": 5}
    assert broker.answers == [{"topic-0": None, "topic-1": REQUEST_TIMED_OUT}]


def test_a_watermark_after_the_deadline_changes_nothing(broker: Broker) -> None:
    """The answer was given: a late replica neither completes nor answers again."""
    operation = broker.produce({"topic-0": 10})
    broker.purgatory.advance(1_000)
    assert broker.replicate("topic-0", 10) == 0
    assert operation.outcome is Outcome.EXPIRED
    assert broker.answers == [{"topic-0": REQUEST_TIMED_OUT}]


def test_an_error_settles_its_partition_only(broker: Broker) -> None:
    """A partition that lost its leader is answered with that, and the others are still waited for."""
    operation = broker.produce({"topic-0": 10, "topic-1": 5})
    broker.partitions.fail("topic-0", "not_leader_or_follower")
    assert broker.purgatory.check_and_complete("topic-0") == 0
    assert operation.lacking == {"topic-1": 5}
    assert broker.replicate("topic-1", 5) == 1
    assert broker.answers == [{"topic-0": "not_leader_or_follower", "topic-1": None}]


def test_an_error_after_the_last_acknowledgement_takes_nothing_back(broker: Broker) -> None:
    """What was settled stays settled."""
    broker.produce({"topic-0": 10, "topic-1": 5})
    broker.replicate("topic-0", 10)
    broker.partitions.fail("topic-0", "not_leader_or_follower")
    broker.replicate("topic-1", 5)
    assert broker.answers == [{"topic-0": None, "topic-1": None}]


def test_the_log_end_alone_does_not_complete_it(broker: Broker) -> None:
    """What only the leader has is not replicated."""
    operation = broker.produce({"topic-0": 10})
    broker.partitions.append("topic-0", Position(100))
    assert broker.purgatory.check_and_complete("topic-0") == 0
    assert operation.outcome is Outcome.PENDING


def test_a_write_of_nothing_is_refused(broker: Broker) -> None:
    """No partition, nothing to wait for."""
    with pytest.raises(ValueError, match="nothing was written"):
        broker.produce({})


@given(
    requests=st.lists(
        st.tuples(st.dictionaries(st.sampled_from(PARTITIONS), st.integers(1, 20), min_size=1), st.integers(1, 50)),
        max_size=10,
    ),
    moves=st.lists(st.tuples(st.sampled_from(PARTITIONS), st.integers(0, 25)), max_size=20),
)
def test_every_write_is_answered_once_and_truly(
    requests: list[tuple[dict[str, int], int]], moves: list[tuple[str, int]]
) -> None:
    """Watermarks in any order, one a millisecond: each write ends when the first of both is due, as arithmetic says."""
    broker = Broker()
    operations = [broker.produce(required, timeout_ms) for required, timeout_ms in requests]
    marks = [dict.fromkeys(PARTITIONS, 0)]
    for now_ms, (partition, offset) in enumerate(moves, start=1):
        broker.purgatory.advance(now_ms)
        broker.replicate(partition, offset)
        marks.append({**marks[-1], partition: max(offset, marks[-1][partition])})
    broker.purgatory.advance(1_000)
    assert len(broker.answers) == len(operations)
    for operation, (required, timeout_ms) in zip(operations, requests, strict=True):
        # The clock moves before the watermark, so a watermark at the deadline is too late.
        last = marks[min(timeout_ms - 1, len(marks) - 1)]
        lacking = {partition: offset for partition, offset in required.items() if last[partition] < offset}
        assert operation.lacking == lacking
        assert operation.outcome is (Outcome.EXPIRED if lacking else Outcome.COMPLETED)
