"""Reading of the topics as one stream, merged by append time, up to their ends at the start.

The ends are read in an order that makes the audit sound. The status rows come first: they say up to when the job has
decided. The verdicts follow, and the heartbeats that they are based on come last. So the stream has every verdict that
a status row proves, and every record that a verdict is based on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from heartwheel.base.wall_clock import wall_ms
from heartwheel.kafka.client import KafkaRefusedError
from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.feed import AuditedRecord, AuditedTopic
from heartwheel.proof.audit.order import in_log_order
from kafka import TopicPartition

_POLL_MS: Final = 500
_STALL_MS_MAX: Final = 20_000
_AHEAD_MAX: Final = 10_000
_APPENDED: Final = 1
"""The `timestamp_type` of a record with the broker's time."""
_NO_TIME: Final = -1
_STATUS_ROWS_A_SHARD: Final = 20
_IN_THIS_ORDER: Final = (
    AuditedTopic.STATUS,
    AuditedTopic.REJECTS,
    AuditedTopic.EXPIRATIONS,
    AuditedTopic.TRIGGERS,
    AuditedTopic.HEARTBEATS,
)


class _Part(NamedTuple):
    source: AuditedTopic
    number: int


class _Span(NamedTuple):
    start: int
    end: int


class TopicLog:
    """The topics to audit, from the positions of an audit up to their present ends.

    Args:
        consumer: a consumer of `heartwheel.kafka.client.reader`.
        audit: has the positions; is told where the heartbeats begin, if the first ones were deleted.

    Raises:
        KafkaRefusedError: a topic does not exist, or no record comes for 20 s.
    """

    def __init__(self, consumer: Any, names: Mapping[str, str], audit: Audit, shards: int) -> None:
        self.name = names[AuditedTopic.HEARTBEATS]
        self._consumer = consumer
        self._names = names
        self._shards = shards
        self._spans: dict[_Part, _Span] = {}
        for source in _IN_THIS_ORDER:
            self._find_spans(source, audit)

    def newest_status(self) -> Iterator[AuditedRecord]:
        """Read the newest status rows."""
        rows = self._shards * _STATUS_ROWS_A_SHARD
        # Also rows that were read before: a run must know the clock even if nothing has happened since the last run.
        return self._merged(
            {part: _Span(max(0, span.end - rows), span.end) for part, span in self._of(AuditedTopic.STATUS).items()}
        )

    def rejects(self) -> Iterator[AuditedRecord]:
        """Read the rejects."""
        return self._merged(self._of(AuditedTopic.REJECTS))

    def entries(self) -> Iterator[AuditedRecord]:
        """Read everything, merged by append time."""
        return self._merged(self._spans)

    def ends(self) -> dict[AuditedTopic, dict[int, int]]:
        """Return the next offset of every partition, after everything was read."""
        return {source: {part.number: span.end for part, span in self._of(source).items()} for source in _IN_THIS_ORDER}

    def _of(self, source: AuditedTopic) -> dict[_Part, _Span]:
        return {part: span for part, span in self._spans.items() if part.source is source}

    def _merged(self, spans: Mapping[_Part, _Span]) -> Iterator[AuditedRecord]:
        return _Streams(self._consumer, self._names, spans).merged()

    def _find_spans(self, source: AuditedTopic, audit: Audit) -> None:
        consumer, topic = self._consumer, self._names[source]
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise KafkaRefusedError(f"topic {topic} does not exist", hint="heartwheel topics --create makes the topics")
        if source is AuditedTopic.HEARTBEATS:
            audit.exist(len(numbers))
        parts = [TopicPartition(topic, number) for number in sorted(numbers)]
        begins, ends = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
        for part in parts:
            done = audit.positions.get(source.value, {}).get(part.partition, 0)
            span = _Span(max(done, begins[part]), ends[part])
            self._spans[_Part(source, part.partition)] = span
            if source is AuditedTopic.HEARTBEATS and span.start > done:
                first = next(self._merged({_Part(source, part.partition): span}), None)
                audit.begins(part.partition, first.append_ms if first else wall_ms())


class _Streams:
    """Many partitions read through one consumer, each as its own stream with a small buffer."""

    def __init__(self, consumer: Any, names: Mapping[str, str], spans: Mapping[_Part, _Span]) -> None:
        self._consumer = consumer
        self._parts = {
            TopicPartition(names[source], number): (source, span.end) for (source, number), span in spans.items()
        }
        self._buffers: dict[TopicPartition, deque[AuditedRecord]] = {part: deque() for part in self._parts}
        consumer.assign(list(self._parts))
        for (source, number), span in spans.items():
            consumer.seek(TopicPartition(names[source], number), span.start)

    def merged(self) -> Iterator[AuditedRecord]:
        return in_log_order([self._stream(part) for part in self._parts])

    def _stream(self, part: TopicPartition) -> Iterator[AuditedRecord]:
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
                raise KafkaRefusedError(
                    f"no record came from {part.topic} for {_STALL_MS_MAX} ms, and its end is not reached"
                )

    def _fill(self) -> bool:
        """Poll once, for the partitions whose buffers are not full."""
        consumer = self._consumer
        full = {part for part, buffer in self._buffers.items() if len(buffer) >= _AHEAD_MAX or self._is_read(part)}
        consumer.pause(*full)
        consumer.resume(*(part for part in self._parts if part not in full))
        batches = consumer.poll(_POLL_MS)
        for part, records in batches.items():
            self._buffers[part].extend(self._entries(part, records))
        return bool(batches)

    def _entries(self, part: TopicPartition, records: Iterable[Any]) -> Iterator[AuditedRecord]:
        source, end = self._parts[part]
        return (
            AuditedRecord(
                record.timestamp
                if source is not AuditedTopic.HEARTBEATS or record.timestamp_type == _APPENDED
                else _NO_TIME,
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
