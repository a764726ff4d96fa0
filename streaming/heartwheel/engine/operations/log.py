"""The order of the log over all partitions, and how far it is known.

Within a partition records count in the order of their offsets, at an *effective time* that never goes back: the newest
append time up to there. Between partitions they count by effective time, then partition, then offset. So "before" has
one meaning for any two records, wherever they are, and it does not depend on which batch read them.

A batch may read a completion and leave a watch that came before it unread in another partition. So a record is applied
only behind the *frontier*: the time before which every record of every partition has been read. Later ones wait in the
state. The frontier is the least time of all partitions: that of the newest record read from each, ticks among them.
While a partition gives no time, nothing is applied, as a completion of any key may be in it.

A record that comes from behind the frontier all the same (of a partition that nobody knew of) counts as if it were at
the frontier, and is counted as late.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec


class PackedRecord(NamedTuple):
    """One record on its way to a shard.

    Args:
        time_ms: the newest append time of its partition up to it, as far as its task has seen, epoch ms.
        offset: its offset.
        value: what it says, proved to decode.
    """

    time_ms: int
    offset: int
    value: bytes


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """What one task read of one partition, for one shard; every shard gets the progress.

    Args:
        partition: the partition.
        first_offset: offset of the first record read, whomever it was for.
        newest_ms: newest append time read, epoch ms.
        records: those for this shard, by offset.
        partitions: the newest count of the topic's partitions in a tick; 0 if there was none.
    """

    partition: int
    first_offset: int
    newest_ms: int
    records: tuple[PackedRecord, ...] = ()
    partitions: int = 0


class OperationEntry(NamedTuple):
    """One record where it stands in the order of the log: tuples compare in that order.

    Args:
        time_ms: its effective time, epoch ms.
        partition: its partition.
        offset: its offset.
        value: what it says.
    """

    time_ms: int
    partition: int
    offset: int
    value: bytes


class OperationLog:
    """Records in order; those that are not behind the frontier yet are held back.

    Args:
        waiting: the records held back so far.
        newest_ms: effective time of each partition's newest record, epoch ms.
        partitions: how many partitions the topic has, as far as is known.
    """

    def __init__(
        self, waiting: Iterable[OperationEntry] = (), newest_ms: dict[int, int] | None = None, partitions: int = 0
    ) -> None:
        self.waiting = list(waiting)
        self.newest_ms = dict(newest_ms or {})
        self.partitions = partitions

    def add(self, packets: Sequence[Packet], *, not_before_ms: int) -> int:
        """Take in what a batch read.

        Args:
            packets: in any order.
            not_before_ms: the frontier so far, epoch ms.

        Returns:
            How many records came from behind it.
        """
        late = 0
        for packet in sorted(packets, key=lambda packet: (packet.partition, packet.first_offset)):
            before_ms = self.newest_ms.get(packet.partition, packet.newest_ms)
            for record in packet.records:
                # What the task saw of its partition begins with the batch; what came before is known here.
                time_ms = max(record.time_ms, self.newest_ms.get(packet.partition, record.time_ms))
                late += time_ms < not_before_ms
                self.waiting.append(
                    OperationEntry(max(time_ms, not_before_ms), packet.partition, record.offset, record.value)
                )
            self.newest_ms[packet.partition] = max(packet.newest_ms, before_ms)
            self.partitions = max(self.partitions, packet.partition + 1, packet.partitions)
        return late

    def proven_ms(self) -> int:
        """Return up to when everything has been read, epoch ms; -1 while a partition gave no time."""
        return min((self.newest_ms.get(number, -1) for number in range(self.partitions)), default=-1)

    def take(self, frontier_ms: int) -> list[OperationEntry]:
        """Take out what is behind the frontier, in the order of the log."""
        self.waiting.sort()
        ready = [entry for entry in self.waiting if entry.time_ms < frontier_ms]
        del self.waiting[: len(ready)]
        return ready

    def cut(self, most: int) -> list[OperationEntry]:
        """Take out the newest of what still waits, so that no more than `most` records do."""
        surplus = self.waiting[most:]
        del self.waiting[most:]
        return surplus
