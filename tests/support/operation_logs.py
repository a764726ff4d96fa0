"""Logs of delayed operations over several partitions, and what each operation's outcome must be, computed plainly."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from heartwheel.engine.operations import (
    Needs,
    OperationEvent,
    OperationEventType,
    OperationLimits,
    OperationShard,
    PackedRecord,
    Packet,
    Refused,
    decode_operation,
    encode_operation,
)
from heartwheel.wire.outcomes import Ended
from heartwheel.wire.partitioner import shard_of

T0 = 1_795_239_789_000
"""When generated logs begin, epoch ms."""

LIMITS = OperationLimits(timeout_ms_max=4_000, remembered_ms=3_000)
"""A short memory, so that a short log outlasts it."""

LATER_MS = 60_000


class OperationRecord(NamedTuple):
    """Hold one record; its offset is its place in its partition."""

    append_ms: int
    partition: int
    event: OperationEvent


class EndedPlainly(NamedTuple):
    """Hold what the reference says of an outcome."""

    operation_id: str
    ending: str
    watched_ms: int
    time_ms: int
    lacking: frozenset[str]
    completed_by: str | None


def plain(ended: Ended) -> EndedPlainly:
    """Shape a shard's decision as the reference does."""
    return EndedPlainly(
        ended.operation_id,
        ended.ending.value,
        ended.watched_ms,
        ended.time_ms,
        frozenset(ended.lacking),
        ended.completed_by,
    )


def watch(operation_id: str, *keys: str, timeout_ms: int = 1_000, needs: Needs = Needs.ANY) -> OperationEvent:
    """Watch keys."""
    return OperationEvent(
        type=OperationEventType.WATCH, operation_id=operation_id, keys=keys, timeout_ms=timeout_ms, needs=needs
    )


def produce(operation_id: str, offsets: dict[str, int], *, timeout_ms: int = 1_000) -> OperationEvent:
    """Wait for replicas, as a produce with acks=all does."""
    return OperationEvent(
        type=OperationEventType.WATCH, operation_id=operation_id, offsets=offsets, timeout_ms=timeout_ms
    )


def fetch(operation_id: str, from_bytes: dict[str, int], *, bytes_min: int, timeout_ms: int = 1_000) -> OperationEvent:
    """Wait for enough to read."""
    return OperationEvent(
        type=OperationEventType.WATCH,
        operation_id=operation_id,
        from_bytes=from_bytes,
        bytes_min=bytes_min,
        timeout_ms=timeout_ms,
    )


def done(key: str) -> OperationEvent:
    """Complete a key."""
    return OperationEvent(type=OperationEventType.COMPLETE, key=key)


def finished(operation_id: str) -> OperationEvent:
    """Complete an operation by its id."""
    return OperationEvent(type=OperationEventType.COMPLETE, operation_id=operation_id)


def mark(key: str, offset: int, size_bytes: int | None = None) -> OperationEvent:
    """Tell a high watermark."""
    return OperationEvent(type=OperationEventType.HIGH_WATERMARK, key=key, offset=offset, size_bytes=size_bytes)


def in_order(log: Sequence[OperationRecord]) -> list[tuple[int, int, int, OperationEvent]]:
    """Give (effective time, partition, offset, event) of all records, in the order in which they count."""
    newest: dict[int, int] = {}
    offsets: dict[int, int] = {}
    rows = []
    for record in log:
        p = record.partition
        newest[p] = max(record.append_ms, newest.get(p, record.append_ms))
        offsets[p] = offsets.get(p, -1) + 1
        rows.append((newest[p], p, offsets[p], record.event))
    return sorted(rows, key=lambda row: row[:3])


class Reference:
    """Run a log plainly: every operation is looked at in every step; no shards, no wheel, no batches."""

    def __init__(self, limits: OperationLimits = LIMITS) -> None:
        self.outcomes: list[EndedPlainly] = []
        self.duplicates = 0
        self._limits = limits
        self._waits: dict[str, tuple[int, OperationEvent, set[str]]] = {}
        self._ended_ms: dict[str, int] = {}
        self._marks: dict[str, tuple[int, int, int]] = {}

    def run(self, log: Sequence[OperationRecord], until_ms: int) -> list[EndedPlainly]:
        """Run a whole log, and return the outcomes by time and operation."""
        for time_ms, _, _, event in in_order(log):
            self._expire(time_ms)
            self._apply(event, time_ms)
        self._expire(until_ms)
        return sorted(self.outcomes)

    def _expire(self, now_ms: int) -> None:
        for operation_id, (watched_ms, event, _) in tuple(self._waits.items()):
            deadline_ms = watched_ms + (event.timeout_ms or 0)
            if deadline_ms <= now_ms:
                self._end(operation_id, "expired", deadline_ms, None)

    def _end(self, operation_id: str, ending: str, now_ms: int, by: str | None) -> None:
        watched_ms, _, lacking = self._waits.pop(operation_id)
        self._ended_ms[operation_id] = now_ms
        self.outcomes.append(EndedPlainly(operation_id, ending, watched_ms, now_ms, frozenset(lacking), by))

    def _apply(self, event: OperationEvent, now_ms: int) -> None:
        if event.type is OperationEventType.WATCH:
            self._watch(event, now_ms)
        elif event.operation_id in self._waits:
            self._end(event.operation_id, "completed", now_ms, None)
        elif event.key:
            self._about_key(event, now_ms)

    def _watch(self, event: OperationEvent, now_ms: int) -> None:
        ended_ms = self._ended_ms.get(event.operation_id)
        remembered = ended_ms is not None and now_ms < ended_ms + self._limits.remembered_ms
        if event.operation_id in self._waits or remembered:
            self.duplicates += 1
            return
        self._waits[event.operation_id] = (now_ms, event, set(event.watched_keys))
        if self._has_it(event.operation_id):
            self._end(event.operation_id, "completed", now_ms, None)

    def _about_key(self, event: OperationEvent, now_ms: int) -> None:
        key = event.key
        if event.type is OperationEventType.HIGH_WATERMARK:
            offset, size, heard_ms = self._marks.get(key, (0, 0, now_ms))
            if now_ms >= heard_ms + self._limits.remembered_ms:
                offset, size = 0, 0
            told = (event.offset or 0, size if event.size_bytes is None else event.size_bytes)
            self._marks[key] = (*max(told, (offset, size)), now_ms)
        for operation_id, (_, watched, lacking) in tuple(self._waits.items()):
            if key not in watched.watched_keys:
                continue
            if event.type is OperationEventType.COMPLETE and watched.keys:
                lacking.discard(key)
                if watched.needs is Needs.ANY:
                    lacking.clear()
                if not lacking:
                    self._end(operation_id, "completed", now_ms, key)
            elif event.type is OperationEventType.HIGH_WATERMARK and self._has_it(operation_id):
                self._end(operation_id, "completed", now_ms, key)

    def _has_it(self, operation_id: str) -> bool:
        watched_ms, event, lacking = self._waits[operation_id]
        if event.keys:
            return False
        known = {
            key: (offset, size)
            for key, (offset, size, heard_ms) in self._marks.items()
            if watched_ms < heard_ms + self._limits.remembered_ms
        }
        if event.offsets:
            lacking -= {key for key, offset in event.offsets.items() if known.get(key, (0, 0))[0] >= offset}
            return not lacking
        to_read = {key: max(0, known.get(key, (0, 0))[1] - start) for key, start in event.from_bytes.items()}
        enough = sum(to_read.values()) >= event.bytes_min
        lacking.clear()
        lacking.update(key for key, size in to_read.items() if not size and not enough)
        return enough


class Shards:
    """Run a log through all shards, batch by batch, with state encoded and decoded between batches.

    Args:
        limits: what each may hold.
    """

    def __init__(self, log: Sequence[OperationRecord], shards: int, limits: OperationLimits = LIMITS) -> None:
        self.ended: list[Ended] = []
        self.refused: list[Refused] = []
        self.clocks_ms = [-1] * shards
        self._limits = limits
        self._blobs = [""] * shards
        self._read: dict[int, int] = {}
        self._partitions: dict[int, list[OperationRecord]] = {}
        for record in log:
            self._partitions.setdefault(record.partition, []).append(record)

    def read(self, partition: int, records: int) -> list[OperationRecord]:
        """Read the next records of a partition."""
        start = self._read.get(partition, 0)
        self._read[partition] = min(start + records, len(self._partitions[partition]))
        return self._partitions[partition][start : self._read[partition]]

    def left(self) -> dict[int, list[OperationRecord]]:
        """Tell what is not read yet, by partition."""
        return {
            p: log[self._read.get(p, 0) :] for p, log in self._partitions.items() if self._read.get(p, 0) < len(log)
        }

    def unread_from_ms(self, take: dict[int, int]) -> int:
        """Tell the least effective time of what would be unread after a batch, epoch ms.

        Args:
            take: how many records the batch would read of each partition.
        """
        ends = {p: self._read.get(p, 0) + take.get(p, 0) for p in self._partitions}
        next_ms = [
            max(r.append_ms for r in log[: ends[p] + 1]) for p, log in self._partitions.items() if log[ends[p] :]
        ]
        return min(next_ms, default=T0 + LATER_MS * 10)

    def batch(self, take: dict[int, int], clock_ms: int | None) -> None:
        """Read some records of each partition, and run every shard; restart all of them afterwards."""
        packets: list[list[Packet]] = [[] for _ in self._blobs]
        for partition, records in take.items():
            offset = self._read.get(partition, 0)
            rows = self.read(partition, records)
            if rows:
                for shard, packet in enumerate(packets_of(partition, offset, rows, len(self._blobs))):
                    packets[shard].append(packet)
        for index, mine in enumerate(packets):
            state = OperationShard(self._limits, clock_ms=self.clocks_ms[index], blob=self._blobs[index])
            result = state.apply(mine, clock_ms)
            self.ended += result.ended
            self.refused += result.refused
            self._blobs[index], self.clocks_ms[index] = state.encode(), state.clock_ms

    def outcomes(self) -> list[EndedPlainly]:
        """Give all outcomes by time and operation."""
        return sorted(map(plain, self.ended))


def packets_of(partition: int, offset: int, rows: Sequence[OperationRecord], shards: int) -> list[Packet]:
    """Pack what was read of one partition for every shard, as the map side of the job does."""
    newest = list(itertools.accumulate((row.append_ms for row in rows), max))
    mine: list[list[PackedRecord]] = [[] for _ in range(shards)]
    for i, row in enumerate(rows):
        homes: Iterable[int] = range(shards) if row.event.key else (shard_of(row.event.operation_id, shards),)
        for shard in homes:
            mine[shard].append(PackedRecord(newest[i], offset + i, encode_operation(row.event)))
    return [Packet(partition, offset, newest[-1], tuple(records)) for records in mine]


_ids = st.sampled_from(["op-1", "op-2", "op-3", "op-4"])
_keys = st.sampled_from(["a", "b", "c"])
_partition_keys = st.sampled_from(["t-0", "t-1", "a"])
_timeouts = st.sampled_from([1, 300, 1_000, 4_000])
_steps = st.sampled_from([0, 0, 1, 1, 299, 300, 700, 999, 1_000, 2_999, 3_000, 6_000])
_key_sets = st.lists(_keys, min_size=1, max_size=3, unique=True)
_small = st.integers(0, 4)

_events = st.one_of(
    st.builds(
        lambda i, ks, t, n: watch(i, *ks, timeout_ms=t, needs=n), _ids, _key_sets, _timeouts, st.sampled_from(Needs)
    ),
    st.builds(
        lambda i, o, t: produce(i, o, timeout_ms=t),
        _ids,
        st.dictionaries(_partition_keys, _small, min_size=1, max_size=3),
        _timeouts,
    ),
    st.builds(
        lambda i, f, b, t: fetch(i, f, bytes_min=b, timeout_ms=t),
        _ids,
        st.dictionaries(_partition_keys, _small, min_size=1, max_size=2),
        _small,
        _timeouts,
    ),
    st.builds(done, _keys),
    st.builds(finished, _ids),
    st.builds(lambda k, o, sized: mark(k, o, o if sized else None), _partition_keys, _small, st.booleans()),
)


@st.composite
def operation_logs(draw: st.DrawFn) -> list[OperationRecord]:
    """Draw a log; append times may step back a little within a partition, as at a change of its leader."""
    log, now = [], T0
    rows = st.tuples(_events, _steps, st.integers(0, 2), st.sampled_from([0, 0, 0, 0, 0, 7, 500]))
    for event, step, partition, back in draw(st.lists(rows, max_size=40)):
        now += step
        log.append(OperationRecord(now - back, partition, decode_operation(encode_operation(event))))
    return log
