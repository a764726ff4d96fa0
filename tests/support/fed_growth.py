"""Logs of a topic that grows from one partition to two while feeds pass on a group that goes to the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from heartwheel.proof.testing import LogBuilder, ProducedRecord
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.partitioner import murmur2
from support.fed_logs import SESSION_MS
from support.heartbeat_logs import T0

MOVING: Final = next(name for name in map(str, range(99)) if (murmur2(name.encode()) & 0x7FFFFFFF) % 2 == 1)
"""The id of a group that goes to the new partition."""

GROWN_MS: Final = 10_000
"""When the topic grows, ms after `T0`."""

HEARD_MS: Final = 12_000
"""When feeds have heard of it, ms after `T0`."""


def beat(member: str = "a", group: str = MOVING) -> Event:
    """Make a heartbeat."""
    return Event(group_id=group, member_id=member, session_timeout_ms=SESSION_MS)


def load(kind: EventType = EventType.LOAD) -> Event:
    """Make what a coordinator says of the whole group."""
    return Event(type=kind, group_id=MOVING)


def home_at(at_ms: int) -> int:
    """Name the partition that a feed writes of the group to at a moment, ms after `T0`."""
    return int(at_ms >= HEARD_MS)


def write(
    log: LogBuilder,
    told: Mapping[int, Event],
    *,
    until_ms: int,
    from_ms: int = 0,
    feed: str = "tap",
    marks: bool = True,
    ticks: bool = True,
) -> LogBuilder:
    """Write what happens second by second, ms after `T0`: ticks, what a feed tells, then its marks everywhere.

    Args:
        log: written to.
        told: what the feed tells, by when it happens.
        until_ms: the last second.
        from_ms: the first one.
        feed: the feed's name.
        marks: whether it writes marks.
        ticks: whether the ticker does.
    """
    for at_ms in range(from_ms, until_ms + 1, 1_000):
        count = 1 + (at_ms >= GROWN_MS)
        for partition in range(count) if ticks else ():
            log.tick(T0 + at_ms, partition=partition, partitions=count)
        if at_ms in told:
            log.pass_on(T0 + at_ms, told[at_ms], T0 + at_ms, feed=feed, partition=home_at(at_ms))
        for partition in range(1 + home_at(at_ms)) if marks else ():
            log.mark(T0 + at_ms, T0 + at_ms, feed=feed, partition=partition)
    return log


def held_back(log: LogBuilder) -> LogBuilder:
    """Write of a member that beats until 9 s, and that its feed holds back at 11 s in its marks of the new partition.

    Args:
        log: written to, until 29 s.
    """
    write(log, beats(9_000), until_ms=11_000)
    for at_ms in range(12_000, 30_000, 1_000):
        log.mark(T0 + at_ms, T0 + at_ms)
        log.tick(T0 + at_ms, partition=1, partitions=2)
        log.mark(T0 + at_ms, T0 + at_ms, partition=1, held={MOVING: T0 + 11_000})
    return log


def beats(until_ms: int, from_ms: int = 0, member: str = "a") -> dict[int, Event]:
    """Make heartbeats every three seconds, by when they happen, ms after `T0`."""
    return {at_ms: beat(member) for at_ms in range(from_ms, until_ms + 1, 3_000)}


def parts(records: Sequence[ProducedRecord]) -> tuple[list[ProducedRecord], list[ProducedRecord]]:
    """Part a log into the old partition and the new one."""
    old, new = ([record for record in records if record.partition == number] for number in (0, 1))
    return old, new
