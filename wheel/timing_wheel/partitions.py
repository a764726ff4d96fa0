"""The state of each partition's log: its end, and how far it is replicated.

Delayed produce and delayed fetch read it. The caller that changes it must check the partition's key in the purgatory
afterwards. Positions never go back, so a condition that holds once continues to hold.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

PartitionT = TypeVar("PartitionT", bound=Hashable)


class Position(NamedTuple):
    """A position in a log.

    Args:
        offset: offset of the next record.
        size_bytes: bytes of all records before it; not needed where only offsets matter.
    """

    offset: int
    size_bytes: int = 0


class Isolation(enum.StrEnum):
    """The end of what a fetch reads, as Kafka's `FetchIsolation` without transactions."""

    LOG_END = "log_end"
    """A follower replica reads everything."""
    HIGH_WATERMARK = "high_watermark"
    """A consumer reads what is replicated to all in-sync replicas."""


_BEGIN: Final = Position(0)


@dataclass
class _Log:
    high_watermark: Position = _BEGIN
    log_end: Position = _BEGIN
    error: str | None = None


class Partitions(Generic[PartitionT]):
    """The log end, the high watermark and the error of each partition.

    An unknown partition is empty. The high watermark never passes the log end: if it is set first, the log end follows.
    """

    def __init__(self) -> None:
        self._logs: dict[PartitionT, _Log] = {}

    def append(self, partition: PartitionT, log_end: Position) -> bool:
        """Set the end of a log.

        Returns:
            Whether the position is new; an older one is ignored.
        """
        log = self._log(partition)
        is_new = log_end.offset > log.log_end.offset
        if is_new:
            log.log_end = log_end
        return is_new

    def replicate(self, partition: PartitionT, high_watermark: Position) -> bool:
        """Set how far a log is replicated to every in-sync replica.

        Returns:
            Whether the position is new; an older one is ignored.
        """
        log = self._log(partition)
        is_new = high_watermark.offset > log.high_watermark.offset
        if is_new:
            log.high_watermark = high_watermark
            self.append(partition, high_watermark)
        return is_new

    def fail(self, partition: PartitionT, error: str) -> None:
        """Set the error with which a partition cannot be served here any more, such as `not_leader_or_follower`."""
        self._log(partition).error = error

    def error(self, partition: PartitionT) -> str | None:
        """Return why a partition cannot be served, `None` if it can."""
        return self._logs[partition].error if partition in self._logs else None

    def end(self, partition: PartitionT, isolation: Isolation) -> Position:
        """Return the position up to which a partition can be read."""
        log = self._logs.get(partition, _Log())
        return log.log_end if isolation is Isolation.LOG_END else log.high_watermark

    def _log(self, partition: PartitionT) -> _Log:
        return self._logs.setdefault(partition, _Log())
