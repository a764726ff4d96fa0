"""Feed heartbeats for benchmarks at almost no cost: batches are encoded once and sent again at every interval.

Every member is a keyed record of its own in the partition that Java clients would choose, and the broker stamps each
batch anew; only the client's work is saved, so the load generator takes no part of the cores that are measured. State
beside a figure that the batches are well filled, and that a member's bytes are the same at every beat.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import msgspec

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.client import KafkaRefusedError
from heartwheel.kafka.topics import describe_topics
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import partition_of
from support.produce import EncodedBatch, ProduceConnection
from support.record_batch import Compression, encode_batch


class RawMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Say who beats.

    Args:
        groups: over how many groups they are spread, in turn.
        session_timeout_ms: session timeout that they tell, ms.
        first: number of the first member; feeds with other ranges are other members of the same groups.
        generation_id: the generation that their heartbeats carry; -1 for workers that know none.
        group_name: what the names of the groups begin with.
    """

    members: int
    groups: int = 1000
    session_timeout_ms: int = 10_000
    first: int = 0
    generation_id: int = -1
    group_name: str = "group"

    def event(self, number: int) -> Event:
        """Make the heartbeat of one member.

        Args:
            number: from `first` to `first + members - 1`.
        """
        group = number % self.groups
        return Event(
            group_id=f"{self.group_name}-{group}",
            member_id=f"member-{number}",
            generation_id=self.generation_id,
            session_timeout_ms=self.session_timeout_ms,
            client_id=f"worker-{number}",
            client_host=f"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        )


class RawReport(msgspec.Struct, frozen=True):
    """Hold what one run did.

    Args:
        records: records that the broker confirmed.
        wall_s: how long it took, s.
        cpu_s: what it cost this process, s of one core.
        late_ms_max: how far a batch was behind its time, ms; 0 if there was no pace to keep.
    """

    records: int
    wall_s: float
    cpu_s: float
    late_ms_max: float

    @property
    def records_per_s(self) -> float:
        """Say how fast it was."""
        return self.records / self.wall_s


class RawFeed:
    """Own the encoded batches and one connection; a context manager.

    The node at the bootstrap address must lead every partition, as a single node does.

    Args:
        bootstrap: `host:port` of a plaintext listener.
        topic: an existing topic.
        compression: codec of the batches.
        records_per_batch: most records a batch.
        properties: Kafka client properties for looking the topic up.
        first: the batch to begin with.

    Attributes:
        next: the batch that comes next.

    Raises:
        KafkaUnreachableError: if nobody answers.
        KafkaRefusedError: if there is no such topic.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        who: RawMembers,
        *,
        compression: Compression = "none",
        records_per_batch: int = 4000,
        properties: Mapping[str, str] | None = None,
        first: int = 0,
    ) -> None:
        found = describe_topics(bootstrap, [topic], properties=properties)
        if topic not in found:
            raise KafkaRefusedError(f"Kafka at {bootstrap} has no topic {topic}")
        self._topic, self._who, self._compression = topic.encode(), who, compression
        self._batches = self._encode_all(found[topic].partitions, records_per_batch)
        self.next = first % len(self._batches)
        self._wire = ProduceConnection(bootstrap, self._topic)

    def run(
        self,
        *,
        interval_ms: int | None = None,
        seconds: float | None = None,
        rounds: int | None = None,
        records: int | None = None,
    ) -> RawReport:
        """Let the members beat, until the first of the given ends.

        Args:
            interval_ms: every member beats once in this time, evenly spread, ms; absent: at the broker's pace.
            seconds: how long, s.
            rounds: how many beats of every member.
            records: how many records in all, exactly.

        Raises:
            ValueError: if no end is given.
            KafkaRefusedError: if the broker refuses a batch.
            KafkaUnreachableError: if it is gone.
        """
        total = min((n for n in (records, rounds and rounds * self._who.members) if n is not None), default=None)
        if total is None and seconds is None:
            raise ValueError("an endless run: give seconds, rounds or records")
        before, cpu, start, late_s = self._wire.confirmed, time.process_time(), time.perf_counter(), 0.0
        for sent_before, batch in self._endlessly(total):
            now = time.perf_counter() - start
            if seconds is not None and now >= seconds:
                break
            if interval_ms:
                due = sent_before / self._who.members * interval_ms / 1000
                if due > now:
                    time.sleep(due - now)
                late_s = max(late_s, time.perf_counter() - start - due)
            self._wire.send(batch)
            self.next = (self.next + 1) % len(self._batches)
        self._wire.settle()
        wall = time.perf_counter() - start
        return RawReport(self._wire.confirmed - before, wall, time.process_time() - cpu, late_s * 1000)

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _endlessly(self, total: int | None) -> Iterator[tuple[int, EncodedBatch]]:
        """Give the batches again and again, cut to `total` records, each with how many records came before."""
        given, first = 0, self.next
        while True:
            for batch in (*self._batches[first:], *self._batches[:first]):
                left = len(batch.numbers) if total is None else total - given
                if left <= 0:
                    return
                yield (
                    given,
                    batch if left >= len(batch.numbers) else self._encode(batch.partition, batch.numbers[:left]),
                )
                given += min(left, len(batch.numbers))

    def _encode_all(self, partitions: int, records_per_batch: int) -> list[EncodedBatch]:
        who = self._who
        homes = [partition_of(who.event(group).group_id.encode(), partitions) for group in range(who.groups)]
        members = [array("i") for _ in range(partitions)]  # ten million objects of Python would take 400 MB
        for number in range(who.first, who.first + who.members):
            members[homes[number % who.groups]].append(number)
        cuts = [
            (place, partition, numbers[place : place + records_per_batch])
            for partition, numbers in enumerate(members)
            for place in range(0, len(numbers), records_per_batch)
        ]
        # In turn over the partitions, as traffic of many clients would be.
        return [self._encode(partition, numbers) for _, partition, numbers in sorted(cuts)]

    def _encode(self, partition: int, numbers: Sequence[int]) -> EncodedBatch:
        events = map(self._who.event, numbers)
        records = [(event.group_id.encode(), encode_event(event)) for event in events]
        return EncodedBatch(partition, numbers, encode_batch(records, wall_ms(), self._compression))
