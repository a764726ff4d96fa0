"""Stop reading where too many records wait, until what they wait for goes on.

A record waits in the state of its shard while something unread may come before it: for a group that is in two
partitions, until both have been read so far. If one of them stands still, behind an open transaction for example, such
records would pile up without a limit. So beyond `engine.waiting_records_max` nothing is read any more: what is unread
stays in the topic, nobody is expired meanwhile, and nothing is lost.

Where no partition stands still, what waits may still never come to be applied: a broker's clock that was set back far
gives records without time. So if ever more records wait, however many batches are read, reading stops for a while, each
time for twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError, reader
from heartwheel.settings import Settings
from kafka import TopicPartition

STILL_S: Final = 2.0
"""A partition whose end does not move for this long stands still: ticks are written far more often."""

_POLL_S: Final = 0.5

Ends = Mapping[int, int]
"""Up to where each partition can be read, by its number."""


STUCK_BATCHES: Final = 25
"""How many batches may end with too many records waiting, and never fewer than before, until reading stops."""

_PAUSE_S: Final = 15.0
_PAUSE_S_MAX: Final = 960.0


class Brake:
    """Watch how many records wait.

    Args:
        ends: asks up to where each partition can be read.
        sleep: waits that many seconds, or less if the job is to end.
    """

    def __init__(self, waiting_max: int, *, ends: Callable[[], Ends], sleep: Callable[[float], object]) -> None:
        self._waiting_max = waiting_max
        self._ends = ends
        self._sleep = sleep
        self._stalled: Ends = {}
        self._waiting = self._least = self._stuck = 0
        self._pause_s = _PAUSE_S

    @property
    def holds(self) -> bool:
        """Whether nothing is to be read for now."""
        return bool(self._stalled) or self._stuck >= STUCK_BATCHES

    def look(self, waiting: Sequence[int]) -> None:
        """Look at how many records waited after each batch since; it takes `STILL_S` where they are too many."""
        if self.holds:
            return
        for self._waiting in waiting:
            falls = self._waiting < self._least or not self._stuck
            self._stuck = 0 if self._waiting <= self._waiting_max else 1 if falls else self._stuck + 1
            self._least = self._waiting if falls else self._least
            if not self._stuck:
                self._pause_s = _PAUSE_S
        if self._stuck:
            self._stalled = self._find_stalled()

    def fault(self) -> Fault:
        """Return why nothing is read any more."""
        if not self._stalled:
            return Fault(
                f"reading has stopped for {self._pause_s:.0f} s: {self._waiting:,} records wait, and no fewer after "
                f"{self._stuck} batches, though every partition continues",
                "compare the clocks of the brokers; engine.waiting_records_max is the limit",
                None,
            )
        names = ", ".join(map(str, sorted(self._stalled)))
        return Fault(
            f"reading has stopped: {self._waiting:,} records wait for what comes in partition {names}, "
            "which has stopped",
            "end the transaction that is open there, or let ticks through; engine.waiting_records_max is the limit",
            None,
        )

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Wait until every partition that stood still goes on, or, where none did, for a pause."""
        if not self._stalled:
            self._sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, _PAUSE_S_MAX)
        while self._stalled and not is_over():
            now = self._asked()
            if now and all(now.get(number, end) != end for number, end in self._stalled.items()):
                break
            self._sleep(_POLL_S)
        self._stalled, self._stuck = {}, 0

    def _find_stalled(self) -> Ends:
        before = self._asked()
        self._sleep(STILL_S)
        after = self._asked()
        return {number: end for number, end in before.items() if after.get(number) == end}

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
