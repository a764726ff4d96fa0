"""The positions of a follower: which partitions there are, where it begins in each, and where it continues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from heartwheel.readers.live.topic_rows import COMPACTED, OutputTopic
from kafka import TopicPartition

COMPACTED_TAIL_MAX: Final = 20_000
"""Most records of a compacted topic to begin with. Each trigger writes a row of every shard, so its newest rows are at
its very end; the rest is what compaction has not removed yet, and hours of it would take minutes to read."""


class FollowedPartitions:
    """The partitions that a follower reads, and the next offset of each.

    Args:
        sources: the source of each topic, by its name.
        since_ms: where to begin in topics that are not compacted, epoch ms; `None` is their end.
        tail_max: most records of a partition to begin with; `None` is no limit.
        positions: the next offset of partitions that were read before, by source and number.
    """

    def __init__(
        self,
        sources: Mapping[str, OutputTopic],
        *,
        since_ms: int | None,
        tail_max: int | None,
        positions: Mapping[tuple[OutputTopic, int], int] | None = None,
    ) -> None:
        self._sources = dict(sources)
        self._since_ms, self._tail_max = since_ms, tail_max
        self._positions = dict(positions or {})
        self._next: dict[Any, int] = {}
        self._looked = False
        self._assigned_to: Any = None
        self.skipped = 0

    @property
    def assigned(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._next)

    def source_of(self, partition: Any) -> OutputTopic:
        """Return the source of a partition."""
        return self._sources[partition.topic]

    def passed(self, partition: Any, offset: int) -> None:
        """Note the next offset of a partition."""
        self._next[partition] = offset

    def refresh(self, consumer: Any, *, timeout_ms: int) -> None:
        """Find new topics and partitions, and assign all of them to the consumer at their positions.

        Args:
            consumer: of kafka-python; a consumer that was not seen before is assigned everything again.
            timeout_ms: how long a broker may take to answer, ms.

        Raises:
            KafkaError: the brokers do not answer.
        """
        new = [partition for partition in self._there(consumer) if partition not in self._next]
        if new:
            self._next |= self._beginnings(consumer, new, timeout_ms)
        self._looked = True
        if new or self._assigned_to is not consumer:
            self._assigned_to = consumer
            consumer.assign(list(self._next))
            for partition, offset in self._next.items():
                consumer.seek(partition, offset)

    def ends(self, consumer: Any, *, timeout_ms: int) -> Mapping[Any, int]:
        """Return the next offset that each partition will have for a new record.

        Raises:
            KafkaError: one of the leaders does not answer.
        """
        return dict(consumer.end_offsets(list(self._next), timeout_ms=timeout_ms)) if self._next else {}

    @staticmethod
    def reached(ends: Mapping[Any, int], consumer: Any) -> bool:
        """Return whether everything before some offsets has been read."""
        return all(consumer.position(partition) >= end for partition, end in ends.items())

    def probe(self, consumer: Any, *, timeout_ms: int) -> None:
        """Ask the leaders of all partitions for their ends.

        Raises:
            KafkaError: one of them does not answer.
        """
        if self._next:
            consumer.end_offsets(list(self._next), timeout_ms=timeout_ms)

    def _there(self, consumer: Any) -> Iterable[Any]:
        for topic in self._sources:
            yield from (TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic)))

    def _beginnings(self, consumer: Any, new: list[Any], timeout_ms: int) -> dict[Any, int]:
        firsts = consumer.beginning_offsets(new, timeout_ms=timeout_ms)
        if self._looked:
            # A partition that appears later contains only unread records, unless it was read before.
            return {partition: max(first, self._position(partition) or 0) for partition, first in firsts.items()}
        ends = consumer.end_offsets(new, timeout_ms=timeout_ms)
        since = self._since(consumer, new, ends, timeout_ms)
        return {
            partition: self._begin(partition, firsts[partition], since[partition], ends[partition]) for partition in new
        }

    def _since(self, consumer: Any, new: list[Any], ends: Mapping[Any, int], timeout_ms: int) -> dict[Any, int]:
        if self._since_ms is None:
            return dict(ends)
        found = consumer.offsets_for_times(dict.fromkeys(new, max(0, self._since_ms)), timeout_ms=timeout_ms)
        return {partition: ends[partition] if at is None else at.offset for partition, at in found.items()}

    def _begin(self, partition: Any, first: int, since: int, end: int) -> int:
        position = self._position(partition)
        if position is not None:
            return self._go_on(position, first, end)
        if self.source_of(partition) in COMPACTED:
            return max(first, end - COMPACTED_TAIL_MAX)
        start = max(first, since)
        tail = start if self._tail_max is None else max(start, end - self._tail_max)
        self.skipped += tail - start
        return tail

    def _position(self, partition: Any) -> int | None:
        return self._positions.get((self.source_of(partition), partition.partition))

    def _go_on(self, position: int, first: int, end: int) -> int:
        """Return where to continue; a topic that is shorter than before was created again, and is read whole."""
        if position > end:
            return first
        self.skipped += max(0, first - position)
        return max(first, position)
