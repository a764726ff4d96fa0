"""The order of records of several partitions: by append time, and within a partition by offset."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar


class Stamped(Protocol):
    """A record with an append time and a partition."""

    @property
    def append_ms(self) -> int:
        """The append time, epoch ms."""

    @property
    def partition(self) -> int:
        """The number of the partition."""


R = TypeVar("R", bound=Stamped)


def in_log_order(partitions: Sequence[Iterable[R]]) -> Iterator[R]:
    """Merge partitions by append time; of records of the same time the one in the lowest partition comes first.

    Where append times step back within a partition, its records keep their order.

    Args:
        partitions: the records of each partition, in the order of their offsets.
    """
    streams = [iter(partition) for partition in partitions]
    heads: list[tuple[int, int, int, R]] = []
    for number, stream in enumerate(streams):
        _push(heads, number, stream)
    while heads:
        _, _, number, record = heapq.heappop(heads)
        yield record
        _push(heads, number, streams[number])


def _push(heads: list[tuple[int, int, int, R]], number: int, stream: Iterator[R]) -> None:
    record = next(stream, None)
    if record is not None:
        # A stream has one head at a time, so its number breaks every tie before the record itself is compared.
        heapq.heappush(heads, (record.append_ms, record.partition, number, record))
