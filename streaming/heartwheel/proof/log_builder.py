"""A log of the heartbeat topic that is written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.relayed import FeedWatermark, encode_mark
from heartwheel.wire.requests import Request, encode_request
from heartwheel.wire.tick import Tick, encode_tick

RUN: Final = "0123456789abcdef"
"""The run of the ticker that `LogBuilder.tick` stands for."""


TICK_INTERVAL_MS: Final = 200
"""From one tick to the next, ms."""


class ProducedRecord(NamedTuple):
    """One record of the heartbeat topic."""

    append_ms: int
    value: bytes | None
    partition: int
    offset: int


class LogBuilder:
    """Write a heartbeat log by hand; offsets are counted for you, append times are yours."""

    def __init__(self) -> None:
        self.records: list[ProducedRecord] = []
        self._next: dict[int, int] = {}

    def add(self, append_ms: int, value: Request | bytes | None, *, partition: int = 0) -> None:
        """Append a request, or any bytes."""
        offset = self._next.get(partition, 0)
        self._next[partition] = offset + 1
        data = encode_request(value) if isinstance(value, Event | GroupHeartbeat) else value
        self.records.append(ProducedRecord(append_ms, data, partition, offset))

    def relay(self, append_ms: int, event: Event, at_ms: int, *, feed: str = "tap", partition: int = 0) -> None:
        """Append an event that a feed passes on, with the time at which it happened."""
        said = msgspec.json.decode(encode_request(event)) | {"feed": feed, "at_ms": at_ms}
        self.add(append_ms, msgspec.json.encode(said), partition=partition)

    def mark(
        self,
        append_ms: int,
        passed_ms: int,
        *,
        feed: str = "tap",
        since_ms: int = 0,
        held: Mapping[str, int] | None = None,
        partition: int = 0,
    ) -> None:
        """Append a feed's mark."""
        mark = FeedWatermark(feed=feed, passed_ms=passed_ms, since_ms=since_ms, held=dict(held or {}))
        self.add(append_ms, encode_mark(mark), partition=partition)

    def beat(
        self,
        append_ms: int,
        group_id: str,
        member_id: str,
        *,
        generation_id: int = -1,
        session_timeout_ms: int | None = None,
        partition: int = 0,
    ) -> None:
        """Append a heartbeat."""
        event = Event(
            type=EventType.HEARTBEAT,
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
            session_timeout_ms=session_timeout_ms,
        )
        self.add(append_ms, event, partition=partition)

    def group_beat(
        self,
        append_ms: int,
        group_id: str,
        member_id: str,
        epoch: int,
        *,
        answer: int | None = None,
        kind: HeartbeatType = HeartbeatType.CONSUMER,
        partition: int = 0,
    ) -> None:
        """Append a heartbeat at a member epoch, with the epoch of its answer if that is known."""
        beat = GroupHeartbeat(
            type=kind, group_id=group_id, member_id=member_id, member_epoch=epoch, answer_member_epoch=answer
        )
        self.add(append_ms, beat, partition=partition)

    def tick(
        self,
        append_ms: int,
        *,
        partition: int = 0,
        run: str = RUN,
        mono_ms: int | None = None,
        partitions: int = 1,
        interval_ms: int = TICK_INTERVAL_MS,
    ) -> None:
        """Append a tick; left out, the ticker's monotonic clock is the broker's."""
        mono_ms = append_ms if mono_ms is None else mono_ms
        self.add(append_ms, encode_tick(Tick(run, mono_ms, partitions, interval_ms)), partition=partition)
