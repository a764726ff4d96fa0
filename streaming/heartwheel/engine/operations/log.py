"""The order of the records over all partitions, and how far it is certain.

Within a partition records count in the order of their offsets, at an *effective time* that never goes back: the newest
append time up to there. Between partitions they count by effective time, then partition, then offset. So for any two
records it is defined which comes first, wherever they are and whichever batch read them.

A batch may read a completion before a watch that came earlier in another partition. So a record is applied only when
its time is before the *frontier*: the time before which every record of every partition has been read. Later records
wait in the state. The frontier is the least time of all partitions, where a partition's time is that of the newest
record read from it, ticks included. While a partition has no time, nothing is applied, because it may contain a
completion of any key.

A record from before the frontier can still come, from a partition that was not known. It is applied as if it were at
the frontier, and counted as late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec


class PackedRecord(NamedTuple):
    """One record on its way to a shard.

    Args:
        time_ms: the newest append time of its partition up to it, of the records that its task has read, epoch ms.
        value: its value, which was decoded once and is valid.
    """

    time_ms: int
    offset: int
    value: bytes


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """What one task read from one partition for one shard. Shards without records get one, too, for its time.

    Args:
        first_offset: offset of the first record read, for any shard.
        newest_ms: newest append time read, epoch ms.
        records: the records for this shard, by offset.
        partitions: the newest count of the topic's partitions in a tick; 0 if there was none.
    """

    partition: int
    first_offset: int
    newest_ms: int
    records: tuple[PackedRecord, ...] = ()
    partitions: int = 0


class OperationEntry(NamedTuple):
    """One record with its place in the order of the log: the tuples compare in that order.

    Args:
        time_ms: its effective time, epoch ms.
    """

    time_ms: int
    partition: int
    offset: int
    value: bytes


class OperationLog:
    """The records in order; those that the frontier has not passed yet wait.

    Args:
        newest_ms: effective time of each partition's newest record, epoch ms.
    """

    def __init__(
        self, waiting: Iterable[OperationEntry] = (), newest_ms: dict[int, int] | None = None, partitions: int = 0
    ) -> None:
        self.waiting = list(waiting)
        self.newest_ms = dict(newest_ms or {})
        self.partitions = partitions

    def add(self, packets: Sequence[Packet], *, not_before_ms: int) -> int:
        """Add what a batch read.

        Args:
            packets: the packets, in any order.
            not_before_ms: the frontier so far, epoch ms.

        Returns:
            The number of records from before the frontier.
        """
        late = 0
        for packet in sorted(packets, key=lambda packet: (packet.partition, packet.first_offset)):
            before_ms = self.newest_ms.get(packet.partition, packet.newest_ms)
            for record in packet.records:
                # The task knows only the records of its batch; the time of the partition before them is known here.
                time_ms = max(record.time_ms, self.newest_ms.get(packet.partition, record.time_ms))
                late += time_ms < not_before_ms
                self.waiting.append(
                    OperationEntry(max(time_ms, not_before_ms), packet.partition, record.offset, record.value)
                )
            self.newest_ms[packet.partition] = max(packet.newest_ms, before_ms)
            self.partitions = max(self.partitions, packet.partition + 1, packet.partitions)
        return late

    def proven_ms(self) -> int:
        """Return the time up to which everything has been read, epoch ms; -1 while a partition has no time."""
        return min((self.newest_ms.get(number, -1) for number in range(self.partitions)), default=-1)

    def take(self, frontier_ms: int) -> list[OperationEntry]:
        """Remove the records before the frontier, and return them in the order of the log."""
        self.waiting.sort()
        ready = [entry for entry in self.waiting if entry.time_ms < frontier_ms]
        del self.waiting[: len(ready)]
        return ready

    def cut(self, most: int) -> list[OperationEntry]:
        """Remove and return the newest waiting records, so that at most `most` still wait."""
        surplus = self.waiting[most:]
        del self.waiting[most:]
        return surplus
