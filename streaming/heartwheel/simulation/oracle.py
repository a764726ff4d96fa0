"""What the rules alone say about a history: event by event, without shards, wheels, batches or a codec.

The whole log is there at once, so the words of the rules can be followed one by one: the effective time of a record is
the greatest append time of its partition up to it; a group's records count by effective time, partition and offset; a
gap between ticks of one run is an outage, and so is one with records in it that have no append time. What comes before
the first append time of its partition is nowhere.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

from heartwheel.coordinator.consumer_config import EpochConfig
from heartwheel.coordinator.manager import AnyGroup, GroupManager
from heartwheel.coordinator.model import Group
from heartwheel.log_time.outage import FORGOTTEN_MS, RESUME_MAX_MS
from heartwheel.partitioner import partition_of, shard_of
from heartwheel.simulation.checkpoint import Checkpoint
from heartwheel.simulation.plan import VALUE_BYTES_MAX, Plan
from heartwheel.simulation.sink import Row
from heartwheel.simulation.topic import Topic
from heartwheel.testing import Record
from heartwheel.wire.events import RejectedError
from heartwheel.wire.requests import Request, decode_request
from heartwheel.wire.verdicts import Verdict, row_of, topic_of

Place = tuple[int, int]


class Entry(NamedTuple):
    """Hold a record that is a request, and its effective time, epoch ms."""

    time_ms: int
    record: Record
    request: Request


class Gone(NamedTuple):
    """Hold an outage of a partition: from when to when nobody could write, epoch ms."""

    from_ms: int
    to_ms: int
    partition: int


class Expected(NamedTuple):
    """Hold what is to be said about a group.

    Args:
        rows: all rows up to the group's time, in order.
        surely: how many of them must be written by now; the rest may wait for the next tick of the wheel.
        group: the state of the group, or `None` where the next tick may have changed it or not.
    """

    rows: list[Row]
    surely: int
    group: AnyGroup | None


class _Read(NamedTuple):
    """Hold a record that was read, its effective time (epoch ms), and what it says if it is a tick of the job's."""

    time_ms: int
    record: Record
    tick: dict[str, int | str] | None


class Log:
    """Know the whole log of a history, as far as the job has read it.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        checkpoint: after the job has ended.
        runs: of the job's ticker.
    """

    def __init__(self, plan: Plan, topic: Topic, checkpoint: Checkpoint, runs: tuple[str, ...]) -> None:
        self._plan = plan
        starts = checkpoint.offsets[0].starts if checkpoint.offsets else {}
        self._read = {log[0].partition: _effective(log, runs) for log in topic.records(starts, checkpoint.read) if log}
        exist = len(topic.partitions)
        counts = (int(read.tick["partitions"]) for log in self._read.values() for read in log if read.tick)
        named = [count for count in counts if count <= exist]
        self.named = frozenset(named)
        """How many partitions ticks name."""
        self._count = max([*named, *(partition + 1 for partition in self._read)], default=1)
        self.outages = sorted(gone for partition in self._read for gone in self._outages(partition))
        self.entries: dict[str, list[Entry]] = defaultdict(list)
        for log in self._read.values():
            for time_ms, record, _ in log:
                if time_ms < 0:
                    continue
                if plan.passed_on.feeds and is_of_a_feed(record.value):
                    continue  # it has a time of its own: `heartwheel.simulation.fed_log`
                try:
                    request = decode_request(record.value, size_max=VALUE_BYTES_MAX)
                except RejectedError:
                    continue
                self.entries[request.group_id].append(Entry(time_ms, record, request))
        for entries in self.entries.values():
            entries.sort(key=lambda entry: (entry.time_ms, entry.record.partition, entry.record.offset))

    def time_of(self, group_id: str) -> int:
        """Tell up to when all of a group was read and is decided, epoch ms."""
        parts = {entry.record.partition for entry in self.entries.get(group_id, ())}
        return min(self._decided_ms(partition) for partition in parts | {self.home_of(group_id)})

    def watermark_ms(self, partition: int, end: int) -> int:
        """Tell the effective time of the last record before an offset, epoch ms; -1 if there is none."""
        read = [read.time_ms for read in self._read.get(partition, ()) if read.record.offset < end]
        return read[-1] if read else -1

    def home_of(self, group_id: str) -> int:
        """Name the partition that Kafka's clients choose for a group."""
        return partition_of(group_id.encode(), self._count)

    def _outages(self, partition: int) -> list[Gone]:
        timed = [(at, read.time_ms) for at, read in enumerate(self._read[partition]) if read.record.append_ms >= 0]
        found = [
            Gone(one_ms, two_ms, partition)
            for (one, one_ms), (two, two_ms) in pairwise(timed)
            if two > one + 1 and two_ms > one_ms and one_ms < self._decided_ms(partition)
        ]
        for one, two, came_back_ms in self._gaps(partition):
            if came_back_ms is not None and one.time_ms < self._decided_ms(partition):
                found.append(Gone(one.time_ms, two.time_ms, partition))
        return found

    def _gaps(self, partition: int) -> list[tuple[_Read, _Read, int | None]]:
        """List gaps before which a ticker lived: both records, and when one of those that lived came back in time."""
        found = []
        places = [at for at, read in enumerate(self._read[partition]) if read.record.append_ms >= 0]
        beside = [two == one + 1 for one, two in pairwise(places)]
        log = [self._read[partition][at] for at in places]
        for at, (one, two) in enumerate(pairwise(log)):
            if not beside[at] or two.time_ms - one.time_ms <= self._plan.outage_min_ms:
                continue
            alive = self._alive(log[: at + 1], self._plan.outage_min_ms / 2)
            back = (
                read.time_ms
                for read in log[at + 1 :]
                if read.tick and read.tick["run"] in alive and read.time_ms - two.time_ms <= RESUME_MAX_MS
            )
            if alive:
                found.append((one, two, next(back, None)))
        return found

    @staticmethod
    def _alive(log: list[_Read], quiet_ms_max: float) -> set[str]:
        """Return the runs that have been quiet for no longer than that at the end of a log, ms."""
        alive, seen, last = set(), set(), log[-1]
        for read in reversed(log):
            if read.tick is None or read.tick["run"] in seen:
                continue
            run = str(read.tick["run"])
            seen.add(run)
            # Where append times step back, only the records' own tell how long the ticker had been silent.
            own_ms, log_ms = last.record.append_ms - read.record.append_ms, last.time_ms - read.time_ms
            if own_ms <= quiet_ms_max and log_ms <= quiet_ms_max + FORGOTTEN_MS:
                alive.add(run)
        return alive

    def _decided_ms(self, partition: int) -> int:
        log = self._read.get(partition)
        if not log:
            return -1
        open_gaps = [
            one.time_ms
            for one, two, came_back_ms in self._gaps(partition)
            if came_back_ms is None and log[-1].time_ms - two.time_ms <= RESUME_MAX_MS
        ]
        return min([log[-1].time_ms, *open_gaps])


def _effective(log: list[Record], runs: tuple[str, ...]) -> list[_Read]:
    read, time_ms = [], -1
    for record in log:
        time_ms = max(time_ms, record.append_ms)
        read.append(_Read(time_ms, record, _tick_of(record.value, runs)))
    return read


def is_of_a_feed(value: bytes | None) -> bool:
    """Tell whether a record names a feed, whoever wrote it."""
    return value is not None and b'"feed"' in value


def _tick_of(value: bytes | None, runs: tuple[str, ...]) -> dict[str, int | str] | None:
    """Read a tick of the job's own; nobody else writes its runs."""
    if value is None or not value.startswith(b'{"type":"tick"'):
        return None
    tick: dict[str, int | str] = json.loads(value)
    return tick if tick.get("run") in runs else None


def expect(plan: Plan, log: Log, group_id: str, refused: set[Place]) -> Expected:
    """Run the rules over a group.

    Args:
        plan: the history's parameters.
        log: all of it.
        group_id: the group.
        refused: records that met a limit of the shard: they tell what time it is, and nothing else.
    """
    verdicts: list[Verdict] = []
    machine = GroupManager(Group(group_id=group_id), EpochConfig(plan.coordinator), verdicts.append)
    seen: set[int] = set()
    clock_ms = log.time_of(group_id)
    steps: list[tuple[int, int, int, int, Entry | Gone]] = [
        (entry.time_ms, 0, entry.record.partition, entry.record.offset, entry)
        for entry in log.entries.get(group_id, ())
    ]
    # An outage stands right after its begin: what comes later, in whichever partition, fires nothing that it put off.
    steps += ((gone.from_ms, 1, gone.partition, 0, gone) for gone in log.outages)
    for time_ms, _, partition, offset, step in sorted(steps, key=lambda step: step[:4]):
        machine.advance(time_ms if isinstance(step, Entry) else min(time_ms, clock_ms))
        if machine.is_forgettable():
            seen.clear()
        if isinstance(step, Gone):
            if partition in seen:
                machine.renew(step.from_ms, step.to_ms)
        elif (partition, offset) not in refused:
            machine.apply(step.request, time_ms)
            seen.add(partition)
        if machine.is_forgettable():
            seen.clear()
    machine.advance(clock_ms // plan.tick_ms * plan.tick_ms)
    surely = len(rows_of(plan, group_id, verdicts))
    group = machine.group if machine.next_deadline_ms() > clock_ms else None
    machine.advance(clock_ms)
    return Expected(rows_of(plan, group_id, verdicts), surely, group)


def rows_of(plan: Plan, group_id: str, verdicts: list[Verdict]) -> list[Row]:
    """Shape verdicts as rows."""
    shard = shard_of(group_id, plan.shards)
    return [row_of(verdict, shard=shard, detected_ms=0) for verdict in verdicts if topic_of(verdict) is not None]
