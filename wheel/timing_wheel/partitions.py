"""What is known of each partition's log: how far it goes, and how far it is replicated.

It is the world that delayed produce and delayed fetch look at. Whoever changes it checks the partition's key in the
purgatory afterwards; changes never go back, so that a condition that held once goes on holding.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

PartitionT = TypeVar("PartitionT", bound=Hashable)


class Position(NamedTuple):
    """Hold a place in a log.

    Args:
        offset: offset of the next record.
        size_bytes: bytes of all records before it; leave it out where only offsets matter.
    """

    offset: int
    size_bytes: int = 0


class Isolation(enum.StrEnum):
    """Name up to where a fetch reads, as Kafka's `FetchIsolation` without transactions."""

    LOG_END = "log_end"
    """A follower replica reads everything."""
    HIGH_WATERMARK = "high_watermark"
    """A consumer reads what is replicated."""


_BEGIN: Final = Position(0)


@dataclass
class _Log:
    high_watermark: Position = _BEGIN
    log_end: Position = _BEGIN
    error: str | None = None


class Partitions(Generic[PartitionT]):
    """Keep the log end, the high watermark and the error of each partition.

    A partition that nothing was said of is empty. The high watermark never passes the log end: where it is given first,
    the log end follows.
    """

    def __init__(self) -> None:
        self._logs: dict[PartitionT, _Log] = {}

    def append(self, partition: PartitionT, log_end: Position) -> bool:
        """Tell how far a log goes.

        Returns:
            Whether that is news; an older position is ignored.
        """
        log = self._log(partition)
        news = log_end.offset > log.log_end.offset
        if news:
            log.log_end = log_end
        return news

    def replicate(self, partition: PartitionT, high_watermark: Position) -> bool:
        """Tell how far a log is replicated on every replica in sync.

        Returns:
            Whether that is news; an older position is ignored.
        """
        log = self._log(partition)
        news = high_watermark.offset > log.high_watermark.offset
        if news:
            log.high_watermark = high_watermark
            self.append(partition, high_watermark)
        return news

    def fail(self, partition: PartitionT, error: str) -> None:
        """Tell that a partition cannot be served here any more, such as `not_leader_or_follower`."""
        self._log(partition).error = error

    def error(self, partition: PartitionT) -> str | None:
        """Tell why a partition cannot be served, `None` when it can."""
        return self._logs[partition].error if partition in self._logs else None

    def end(self, partition: PartitionT, isolation: Isolation) -> Position:
        """Tell up to where a partition can be read."""
        log = self._logs.get(partition, _Log())
        return log.log_end if isolation is Isolation.LOG_END else log.high_watermark

    def _log(self, partition: PartitionT) -> _Log:
        return self._logs.setdefault(partition, _Log())
