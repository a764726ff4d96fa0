"""What the rules alone say about a history: event by event, without shards, wheels, batches or a codec."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.coordinator.partition import shard_of
from heartwheel.simulation.checkpoint import Checkpoint
from heartwheel.simulation.plan import VALUE_BYTES_MAX, Plan
from heartwheel.simulation.sink import Row
from heartwheel.simulation.topic import Topic
from heartwheel.testing import Record
from heartwheel.wire.events import Event, RejectedError, decode_event
from heartwheel.wire.verdicts import Verdict, row_of, topic_of

Place = tuple[int, int]


class Entry(NamedTuple):
    """Hold a record that is an event."""

    record: Record
    event: Event


class Expected(NamedTuple):
    """Hold what is to be said about a group.

    Args:
        rows: all rows up to the shard's clock, in order.
        surely: how many of them must be told by now; the rest may wait for the next tick of the wheel.
        group: the state of the group, or `None` where the next tick may have changed it or not.
    """

    rows: list[Row]
    surely: int
    group: Group | None


def entries_of(topic: Topic, checkpoint: Checkpoint) -> dict[str, list[Entry]]:
    """Put the events of each group into the order in which they count.

    Of a group in one partition that is the order of offsets. Of a group in several, where it should not be, the batch
    in which a record was read comes first, then append time, partition and offset.
    """
    groups: dict[str, list[Entry]] = defaultdict(list)
    for planned in checkpoint.offsets:
        batch: dict[str, list[tuple[int, int, int, Entry]]] = defaultdict(list)
        for records in topic.records(planned.starts, planned.ends):
            newest: dict[str, int] = {}
            for record in records:
                try:
                    event = decode_event(record.value, size_max=VALUE_BYTES_MAX)
                except RejectedError:
                    continue
                at = newest[event.group_id] = max(record.append_ms, newest.get(event.group_id, 0))
                batch[event.group_id].append((at, record.partition, record.offset, Entry(record, event)))
        for group_id, timed in batch.items():
            if len({partition for _, partition, _, _ in timed}) > 1:
                timed.sort(key=lambda entry: entry[:3])
            groups[group_id] += (entry for *_, entry in timed)
    return groups


def expect(plan: Plan, group_id: str, entries: list[Entry], refused: set[Place], clock_ms: int) -> Expected:
    """Run the rules over a group.

    Args:
        plan: the history's parameters.
        group_id: the group.
        entries: its events, in order.
        refused: records that met a limit of the shard: they tell what time it is, and nothing else.
        clock_ms: the shard's clock, epoch ms.
    """
    verdicts: list[Verdict] = []
    machine = GroupMachine(Group(group_id=group_id), plan.coordinator, verdicts.append)
    for record, event in entries:
        if (record.partition, record.offset) in refused:
            machine.advance(record.append_ms)
        else:
            machine.apply(event, record.append_ms)
    machine.advance(clock_ms // plan.tick_ms * plan.tick_ms)
    surely = len(_rows(plan, group_id, verdicts))
    group = machine.group if machine.next_deadline_ms() > clock_ms else None
    machine.advance(clock_ms)
    return Expected(_rows(plan, group_id, verdicts), surely, group)


def _rows(plan: Plan, group_id: str, verdicts: list[Verdict]) -> list[Row]:
    """Shape verdicts as rows; what is said twice, as by two loads in one millisecond, is one row for its readers."""
    shard = shard_of(group_id, plan.shards)
    rows = [row_of(verdict, shard=shard, detected_ms=0) for verdict in verdicts if topic_of(verdict) is not None]
    return [row for place, row in enumerate(rows) if row not in rows[:place]]
