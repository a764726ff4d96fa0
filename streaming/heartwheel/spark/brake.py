"""Stop reading where too many records wait for a partition that gives nothing, until it gives something again.

A record waits in the state of its shard while something unread may come before it: for a group that is in two
partitions, until both have been read so far. If one of them stands still, behind an open transaction for example, such
records would pile up without a limit. So beyond `engine.waiting_records_max` nothing is read any more: what is unread
stays in the topic, nobody is expired meanwhile, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, reader
from heartwheel.settings import Settings
from heartwheel.spark.faults import Fault
from kafka import TopicPartition

STILL_S: Final = 2.0
"""A partition whose end does not move for this long stands still: ticks are written far more often."""

_POLL_S: Final = 0.5

Ends = Mapping[int, int]
"""Up to where each partition can be read, by its number."""


class Brake:
    """Watch how many records wait.

    Args:
        waiting_max: most records that may wait while a partition stands still.
        ends: asks up to where each partition can be read.
        sleep: waits that many seconds, or less if the job is to end.
    """

    def __init__(self, waiting_max: int, *, ends: Callable[[], Ends], sleep: Callable[[float], object]) -> None:
        self._waiting_max = waiting_max
        self._ends = ends
        self._sleep = sleep

    def standing(self, waiting: int) -> Ends:
        """List the partitions that stand still if too many records wait, with their ends; it takes `STILL_S` then."""
        if waiting <= self._waiting_max:
            return {}
        before = self._asked()
        self._sleep(STILL_S)
        after = self._asked()
        return {number: end for number, end in before.items() if after.get(number) == end}

    def fault(self, waiting: int, standing: Ends) -> Fault:
        """Say why nothing is read any more."""
        names = ", ".join(map(str, sorted(standing)))
        return Fault(
            f"reading has stopped: {waiting:,} records wait for what comes in partition {names}, which stands still",
            "end the transaction that is open there, or let ticks through; engine.waiting_records_max is the limit",
            None,
        )

    def wait(self, standing: Ends, is_over: Callable[[], bool]) -> None:
        """Wait until every partition that stood still goes on, or the job is to end."""
        while not is_over():
            now = self._asked()
            if now and all(now.get(number, end) != end for number, end in standing.items()):
                return
            self._sleep(_POLL_S)

    def _asked(self) -> Ends:
        try:
            return self._ends()
        except (KafkaUnreachableError, KafkaRefusedError):
            return {}


def ends_of(settings: Settings, topic: str) -> Ends:
    """Ask up to where each partition of a topic can be read: before the first transaction that is open.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the cluster refuses it.
    """
    with reader(settings.kafka.bootstrap_servers, settings.kafka.client, doing=f"look at topic {topic}") as consumer:
        numbers = consumer.partitions_for_topic(topic) or set()
        ends = consumer.end_offsets([TopicPartition(topic, number) for number in sorted(numbers)])
    return {part.partition: end for part, end in ends.items()}
