"""Delayed fetch: a read is answered when there is enough, when something failed, or when it waited long enough."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from timing_wheel import DelayedFetch, FetchFrom, Isolation, Outcome, Partitions, Position, Purgatory


class Broker:
    """Drive a purgatory of fetch requests as a replica manager does."""

    def __init__(self) -> None:
        self.partitions: Partitions[str] = Partitions()
        self.purgatory: Purgatory[str, DelayedFetch[str]] = Purgatory()
        self.answers: list[Mapping[str, int]] = []

    def fetch(
        self,
        wanted: dict[str, FetchFrom],
        bytes_min: int,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        wait_ms: int = 500,
    ) -> DelayedFetch[str]:
        """Ask, and wait for enough."""
        operation = DelayedFetch(
            wanted,
            self.partitions,
            bytes_min=bytes_min,
            wait_ms=wait_ms,
            isolation=isolation,
            respond=self.answers.append,
        )
        self.purgatory.try_complete_else_watch(operation, operation.keys, 0)
        return operation

    def append(self, partition: str, offset: int, size_bytes: int) -> int:
        """Append to a log."""
        self.partitions.append(partition, Position(offset, size_bytes))
        return self.purgatory.check_and_complete(partition)

    def replicate(self, partition: str, offset: int, size_bytes: int) -> int:
        """Move a high watermark."""
        self.partitions.replicate(partition, Position(offset, size_bytes))
        return self.purgatory.check_and_complete(partition)


BEGIN = FetchFrom(Position(0))


@pytest.fixture
def broker() -> Broker:
    """Make one that has no log yet."""
    return Broker()


@pytest.mark.parametrize(("size_bytes", "completed"), [(99, 0), (100, 1), (101, 1)])
def test_it_completes_when_there_are_enough_bytes(broker: Broker, size_bytes: int, completed: int) -> None:
    """One byte less than asked for it waits; at it and after it, it completes with what there is."""
    broker.fetch({"t-0": BEGIN}, bytes_min=100)
    assert broker.replicate("t-0", 1, size_bytes) == completed
    assert broker.answers == [{"t-0": size_bytes}] * completed


def test_a_consumer_waits_for_the_high_watermark_and_a_follower_does_not(broker: Broker) -> None:
    """Appended but not replicated: there for a follower, not for a consumer."""
    consumer = broker.fetch({"t-0": BEGIN}, bytes_min=1)
    follower = broker.fetch({"t-0": BEGIN}, bytes_min=1, isolation=Isolation.LOG_END)
    assert broker.append("t-0", 5, 50) == 1
    assert (consumer.outcome, follower.outcome) == (Outcome.PENDING, Outcome.COMPLETED)
    assert broker.replicate("t-0", 5, 50) == 1
    assert consumer.outcome is Outcome.COMPLETED


def test_the_partitions_count_together(broker: Broker) -> None:
    """Sixty bytes of one and forty of another are a hundred."""
    broker.fetch({"t-0": BEGIN, "t-1": BEGIN}, bytes_min=100)
    assert broker.replicate("t-0", 6, 60) == 0
    assert broker.replicate("t-1", 4, 40) == 1
    assert broker.answers == [{"t-0": 60, "t-1": 40}]


def test_a_partition_counts_no_more_than_it_may_give(broker: Broker) -> None:
    """A thousand bytes of a partition that may give fifty are fifty."""
    broker.fetch({"t-0": FetchFrom(Position(0), bytes_max=50), "t-1": BEGIN}, bytes_min=100)
    assert broker.replicate("t-0", 100, 1_000) == 0
    assert broker.replicate("t-1", 5, 50) == 1
    assert broker.answers == [{"t-0": 50, "t-1": 50}]


def test_it_counts_from_where_it_reads(broker: Broker) -> None:
    """What was before the position does not count."""
    broker.replicate("t-0", 10, 1_000)
    broker.fetch({"t-0": FetchFrom(Position(10, 1_000))}, bytes_min=10)
    assert broker.replicate("t-0", 11, 1_009) == 0
    assert broker.replicate("t-0", 12, 1_010) == 1


def test_a_position_beyond_the_end_has_nothing_yet(broker: Broker) -> None:
    """A consumer ahead of the high watermark of a new leader waits, and takes nothing from the other partitions."""
    broker.replicate("t-0", 10, 1_000)
    broker.fetch({"t-0": FetchFrom(Position(20, 2_000)), "t-1": BEGIN}, bytes_min=10)
    assert broker.purgatory.delayed == 1
    assert broker.replicate("t-1", 1, 10) == 1
    assert broker.answers == [{"t-0": 0, "t-1": 10}]


def test_at_its_deadline_it_answers_with_what_there_is(broker: Broker) -> None:
    """The longest wait is over: less than asked for, but not nothing."""
    operation = broker.fetch({"t-0": BEGIN}, bytes_min=100, wait_ms=500)
    broker.replicate("t-0", 3, 30)
    assert broker.purgatory.advance(499) == []
    assert broker.purgatory.advance(500) == [operation]
    assert broker.answers == [{"t-0": 30}]


def test_a_failed_partition_is_heard_of_at_once(broker: Broker) -> None:
    """A partition that lost its leader ends the wait of whoever reads it, and of nobody else."""
    broker.fetch({"t-0": BEGIN, "t-1": BEGIN}, bytes_min=100)
    other = broker.fetch({"t-1": BEGIN}, bytes_min=100)
    broker.partitions.fail("t-0", "not_leader_or_follower")
    assert broker.purgatory.check_and_complete("t-0") == 1
    assert other.outcome is Outcome.PENDING


def test_asking_for_no_bytes_is_answered_at_once(broker: Broker) -> None:
    """A minimum of 0 never waits."""
    assert broker.fetch({"t-0": BEGIN}, bytes_min=0).outcome is Outcome.COMPLETED


def test_asking_for_no_partition_is_refused(broker: Broker) -> None:
    """Nothing wanted, nothing to wait for."""
    with pytest.raises(ValueError, match="nothing is wanted"):
        broker.fetch({}, bytes_min=1)


def test_positions_never_go_back_and_the_log_end_is_never_behind(broker: Broker) -> None:
    """An older position is no news; a high watermark that is told first moves the log end with it."""
    assert broker.partitions.replicate("t-0", Position(10, 100))
    assert not broker.partitions.replicate("t-0", Position(9, 90))
    assert not broker.partitions.append("t-0", Position(10, 100))
    for isolation in Isolation:
        assert broker.partitions.end("t-0", isolation) == Position(10, 100)
    assert broker.partitions.append("t-0", Position(12, 120))
    assert broker.partitions.end("t-0", Isolation.HIGH_WATERMARK) == Position(10, 100)
    assert broker.partitions.end("unheard-of", Isolation.LOG_END) == Position(0)
