"""Delayed fetch: a read that waits until enough bytes are available.

The rules are those of Kafka's `DelayedFetch`. Watch it under the keys of its partitions, and check a partition's key
whenever its log end (for followers) or its high watermark (for consumers) moves. One of Kafka's rules is not needed:
Kafka answers at once when a fetch and the end are in different segments of a log, since it cannot count the bytes
between them. Positions here count bytes from the beginning of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from timing_wheel.delayed_operation import DelayedOperation
from timing_wheel.partitions import Isolation, Partitions, Position

PartitionT = TypeVar("PartitionT", bound=Hashable)


class FetchFrom(NamedTuple):
    """The part of a fetch that is about one partition.

    Args:
        position: the position to read from.
        bytes_max: most bytes that are read, and counted, of this partition.
    """

    position: Position
    bytes_max: int = 1 << 20


class DelayedFetch(DelayedOperation, Generic[PartitionT]):
    """A fetch that waits until the partitions have `bytes_min` to read, or one of them fails, at most for `wait_ms`.

    Args:
        wanted: what to read of each partition.
        partitions: the state of the partitions.
        bytes_min: number of bytes to wait for; 0 is satisfied at once.
        wait_ms: longest wait, milliseconds; at its end the fetch responds with the bytes available.
        isolation: the end of the readable part: `HIGH_WATERMARK` for consumers, `LOG_END` for followers.
        respond: called once at the end, with the available bytes of each partition.

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
        """The keys to watch it under, which are its partitions."""
        return tuple(self._wanted)

    def available(self) -> dict[PartitionT, int]:
        """Return how many of the wanted bytes each partition has to read by now."""
        return {partition: self._bytes_of(partition, fetch) for partition, fetch in self._wanted.items()}

    def _bytes_of(self, partition: PartitionT, fetch: FetchFrom) -> int:
        end = self._partitions.end(partition, self._isolation)
        # After a change of leader a consumer may ask beyond the high watermark, where no bytes are readable yet.
        return max(0, min(end.size_bytes - fetch.position.size_bytes, fetch.bytes_max))

    def is_satisfied(self) -> bool:
        """Return whether enough bytes are available, or a partition failed, which the client must learn at once."""
        if any(self._partitions.error(partition) is not None for partition in self._wanted):
            return True
        return sum(self.available().values()) >= self._bytes_min

    def on_complete(self) -> None:
        """Respond with the bytes available."""
        if self._respond is not None:
            self._respond(self.available())
