"""Read the topics in step: one merged stream in the order of append times, up to where the topics end by now.

The ends are taken in an order that makes the audit sound: first of the status rows, which say up to when the job has
decided; then of what it decided; last of the heartbeats it decided by. So everything that a status row vouches for is
there, and every record that a verdict is based on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from heartwheel.audit.audit import Audit
from heartwheel.audit.feed import Entry, Source
from heartwheel.audit.order import in_log_order
from heartwheel.kafka.client import KafkaRefusedError
from heartwheel.wall_clock import wall_ms
from kafka import TopicPartition

_POLL_MS: Final = 500
_STALL_MS_MAX: Final = 20_000
_AHEAD_MAX: Final = 10_000
_APPENDED: Final = 1
"""The `timestamp_type` of a record whose time is the broker's."""
_NO_TIME: Final = -1
_STATUS_ROWS_A_SHARD: Final = 20
_IN_THIS_ORDER: Final = (Source.STATUS, Source.REJECTS, Source.EXPIRATIONS, Source.TRIGGERS, Source.HEARTBEATS)


class _Part(NamedTuple):
    source: Source
    number: int


class _Span(NamedTuple):
    start: int
    end: int


class TopicLog:
    """Read what is in the topics by now, from the positions of an audit on.

    Args:
        consumer: one of `heartwheel.kafka.client.reader`.
        names: the topics, by source.
        audit: learns where the heartbeats begin, if their first ones are gone.
        shards: how many shards the job has.

    Raises:
        KafkaRefusedError: a topic is not there, or nothing comes for 20 s.
    """

    def __init__(self, consumer: Any, names: Mapping[str, str], audit: Audit, shards: int) -> None:
        self.name = names[Source.HEARTBEATS]
        self._consumer = consumer
        self._names = names
        self._shards = shards
        self._spans: dict[_Part, _Span] = {}
        for source in _IN_THIS_ORDER:
            self._find_spans(source, audit)

    def newest_status(self) -> Iterator[Entry]:
        """Read the newest status rows."""
        rows = self._shards * _STATUS_ROWS_A_SHARD
        # From before what was read already, too: a run must know the clock though nothing has happened since the last.
        return self._merged(
            {part: _Span(max(0, span.end - rows), span.end) for part, span in self._of(Source.STATUS).items()}
        )

    def rejects(self) -> Iterator[Entry]:
        """Read the rejects."""
        return self._merged(self._of(Source.REJECTS))

    def entries(self) -> Iterator[Entry]:
        """Read everything, merged by append time."""
        return self._merged(self._spans)

    def ends(self) -> dict[Source, dict[int, int]]:
        """Tell the next offset of every partition once all has been read."""
        return {source: {part.number: span.end for part, span in self._of(source).items()} for source in _IN_THIS_ORDER}

    def _of(self, source: Source) -> dict[_Part, _Span]:
        return {part: span for part, span in self._spans.items() if part.source is source}

    def _merged(self, spans: Mapping[_Part, _Span]) -> Iterator[Entry]:
        return _Streams(self._consumer, self._names, spans).merged()

    def _find_spans(self, source: Source, audit: Audit) -> None:
        consumer, topic = self._consumer, self._names[source]
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise KafkaRefusedError(f"there is no topic {topic}", hint="heartwheel topics shows what there is")
        if source is Source.HEARTBEATS:
            audit.exist(len(numbers))
        parts = [TopicPartition(topic, number) for number in sorted(numbers)]
        begins, ends = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
        for part in parts:
            done = audit.positions.get(source.value, {}).get(part.partition, 0)
            span = _Span(max(done, begins[part]), ends[part])
            self._spans[_Part(source, part.partition)] = span
            if source is Source.HEARTBEATS and span.start > done:
                first = next(self._merged({_Part(source, part.partition): span}), None)
                audit.begins(part.partition, first.append_ms if first else wall_ms())


class _Streams:
    """Read many partitions through one consumer, each as a stream of its own with a small buffer."""

    def __init__(self, consumer: Any, names: Mapping[str, str], spans: Mapping[_Part, _Span]) -> None:
        self._consumer = consumer
        self._parts = {
            TopicPartition(names[source], number): (source, span.end) for (source, number), span in spans.items()
        }
        self._buffers: dict[TopicPartition, deque[Entry]] = {part: deque() for part in self._parts}
        consumer.assign(list(self._parts))
        for (source, number), span in spans.items():
            consumer.seek(TopicPartition(names[source], number), span.start)

    def merged(self) -> Iterator[Entry]:
        return in_log_order([self._stream(part) for part in self._parts])

    def _stream(self, part: TopicPartition) -> Iterator[Entry]:
        buffer, moved = self._buffers[part], time.monotonic()
        while buffer or not self._is_read(part):
            while buffer:
                yield buffer.popleft()
                moved = time.monotonic() if not buffer else moved
            if self._is_read(part):
                continue
            if self._fill():
                moved = time.monotonic()
            elif (time.monotonic() - moved) * 1000 > _STALL_MS_MAX:
                raise KafkaRefusedError(f"nothing came from {part.topic} for {_STALL_MS_MAX} ms, and it has not ended")

    def _fill(self) -> bool:
        """Poll once, for those partitions that have little left."""
        consumer = self._consumer
        full = {part for part, buffer in self._buffers.items() if len(buffer) >= _AHEAD_MAX or self._is_read(part)}
        consumer.pause(*full)
        consumer.resume(*(part for part in self._parts if part not in full))
        batches = consumer.poll(_POLL_MS)
        for part, records in batches.items():
            self._buffers[part].extend(self._entries(part, records))
        return bool(batches)

    def _entries(self, part: TopicPartition, records: Iterable[Any]) -> Iterator[Entry]:
        source, end = self._parts[part]
        return (
            Entry(
                record.timestamp if source is not Source.HEARTBEATS or record.timestamp_type == _APPENDED else _NO_TIME,
                source,
                part.partition,
                record.offset,
                record.value,
                part.partition,
                record.offset,
            )
            for record in records
            if record.offset < end
        )

    def _is_read(self, part: TopicPartition) -> bool:
        return bool(self._consumer.position(part) >= self._parts[part][1])
