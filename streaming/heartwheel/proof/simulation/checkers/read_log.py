"""The log of a history as far as the job has read it, with the effective time of each record.

The effective time of a record is the greatest append time of its partition up to it. What comes before the first
append time of its partition has none, and counts for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from heartwheel.proof.log_builder import ProducedRecord
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import Request, decode_request

Place = tuple[int, int]
"""(partition, offset)."""


class PlacedRequest(NamedTuple):
    """A request, its record, and the time at which it counts, epoch ms."""

    time_ms: int
    record: ProducedRecord
    request: Request


class ReadLog:
    """What the job has read.

    Args:
        checkpoint: after the job has ended.

    Attributes:
        records: those of each partition, in the order of their offsets.
        entries: the requests of each group that writes for itself, in the order in which they count.
    """

    def __init__(self, plan: Plan, topic: SimulatedTopic, checkpoint: Checkpoint) -> None:
        starts = checkpoint.offsets[0].starts if checkpoint.offsets else {}
        self.records = topic.records(starts, checkpoint.read)
        self.entries: dict[str, list[PlacedRequest]] = defaultdict(list)
        self._times: dict[int, list[tuple[int, int]]] = {}
        for log in self.records:
            time_ms = -1
            for record in log:
                time_ms = max(time_ms, record.append_ms)
                self._times.setdefault(record.partition, []).append((record.offset, time_ms))
                self._read(record, time_ms, plan)
        for entries in self.entries.values():
            entries.sort(key=lambda entry: (entry.time_ms, entry.record.partition, entry.record.offset))

    def _read(self, record: ProducedRecord, time_ms: int, plan: Plan) -> None:
        if time_ms < 0 or (plan.relayed.feeds and is_of_a_feed(record.value)):
            return  # records of feeds have a time of their own: `heartwheel.proof.simulation.checkers.fed_log`
        try:
            request = decode_request(record.value, size_max=VALUE_BYTES_MAX)
        except RejectedError:
            return
        self.entries[request.group_id].append(PlacedRequest(time_ms, record, request))

    def partitions_of(self, group_id: str) -> set[int]:
        """Return the partitions in which a group has written for itself."""
        return {entry.record.partition for entry in self.entries.get(group_id, ())}

    def watermark_ms(self, partition: int, end: int) -> int:
        """Return the effective time of the last record before an offset, epoch ms; -1 if there is none."""
        times = [time_ms for offset, time_ms in self._times.get(partition, ()) if offset < end]
        return times[-1] if times else -1


def is_of_a_feed(value: bytes | None) -> bool:
    """Return whether a record names a feed, no matter who wrote it."""
    return value is not None and b'"feed"' in value
