"""Delayed fetch: a read that waits until there is enough to be worth an answer.

The rules are those of Kafka's `DelayedFetch`. Watch it under the keys of its partitions, and check a partition's key
whenever its log end (for followers) or its high watermark (for consumers) moves. One rule is not needed: Kafka answers
at once when a fetch and the end lie on different segments of a log, since it cannot tell the bytes between them;
positions here count bytes from the begin of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from timing_wheel.delayed_operation import DelayedOperation
from timing_wheel.partitions import Isolation, Partitions, Position

PartitionT = TypeVar("PartitionT", bound=Hashable)


class FetchFrom(NamedTuple):
    """Hold what is asked of one partition.

    Args:
        position: where to read from.
        bytes_max: most bytes that are taken, and counted, of this partition.
    """

    position: Position
    bytes_max: int = 1 << 20


class DelayedFetch(DelayedOperation, Generic[PartitionT]):
    """Wait until the partitions together have `bytes_min` to read, or one of them fails, but no longer than `wait_ms`.

    Args:
        wanted: what to read of each partition.
        partitions: what is known of the partitions.
        bytes_min: bytes that are worth an answer; 0 is satisfied at once.
        wait_ms: longest wait, milliseconds; at its end whatever there is is answered.
        isolation: up to where to read: `HIGH_WATERMARK` for consumers, `LOG_END` for followers.
        respond: called once at the end, with the bytes there are of each partition.

    Raises:
        ValueError: no partition is wanted, or the wait is negative.
    """

    def __init__(
        self,
        wanted: Mapping[PartitionT, FetchFrom],
        partitions: Partitions[PartitionT],
        *,
        bytes_min: int,
        wait_ms: int,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        respond: Callable[[Mapping[PartitionT, int]], None] | None = None,
    ) -> None:
        super().__init__(wait_ms)
        if not wanted:
            raise ValueError("nothing is wanted, so there is nothing to wait for; answer at once")
        self._wanted = dict(wanted)
        self._partitions = partitions
        self._bytes_min = bytes_min
        self._isolation = isolation
        self._respond = respond

    @property
    def keys(self) -> tuple[PartitionT, ...]:
        """The keys to watch it under: its partitions."""
        return tuple(self._wanted)

    def available(self) -> dict[PartitionT, int]:
        """Count the bytes that each partition has to read by now, as far as they are wanted."""
        return {partition: self._bytes_of(partition, fetch) for partition, fetch in self._wanted.items()}

    def _bytes_of(self, partition: PartitionT, fetch: FetchFrom) -> int:
        end = self._partitions.end(partition, self._isolation)
        # After a change of leader a consumer may ask beyond the high watermark: there is nothing for it yet.
        return max(0, min(end.size_bytes - fetch.position.size_bytes, fetch.bytes_max))

    def is_satisfied(self) -> bool:
        """Tell whether there is enough, or a partition failed, which the asker should hear of at once."""
        if any(self._partitions.error(partition) is not None for partition in self._wanted):
            return True
        return sum(self.available().values()) >= self._bytes_min

    def on_complete(self) -> None:
        """Answer with whatever there is."""
        if self._respond is not None:
            self._respond(self.available())
