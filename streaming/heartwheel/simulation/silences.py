"""P1 without any rule: was somebody expired who had been heard of before the deadline, or had ended in order?

For workers of presence groups that can be read off the log: each heartbeat of theirs keeps them alive, but for those of
an incarnation that has left or failed before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from heartwheel.simulation.oracle import Entry, Place
from heartwheel.simulation.plan import Plan
from heartwheel.simulation.sink import Row
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import HeartbeatType
from heartwheel.wire.verdicts import ExpirationRow


def falsely_expired(
    plan: Plan, group_id: str, entries: list[Entry], refused: set[Place], rows: list[Row]
) -> Iterator[ExpirationRow]:
    """List the expirations of a group's workers of whom the log holds a heartbeat in time.

    Args:
        plan: the history's parameters.
        group_id: the group; one that is no presence group, or that stops being one, is not looked at.
        entries: its events, in order.
        refused: records that met a limit of the shard.
        rows: what was written about it.
    """
    kinds = {group.group_id: group.kind for group in plan.groups}
    kinds |= {fed.group.group_id: fed.group.kind for fed in plan.passed_on.groups}
    others = {EventType.LOAD, EventType.UNLOAD, *HeartbeatType}
    if kinds.get(group_id) != "presence" or others.intersection(entry.request.type for entry in entries):
        return
    beats = _beats(entries, refused)
    for row in rows:
        if isinstance(row, ExpirationRow):
            times = sorted(beats[row.member_id])
            after = bisect_right(times, row.last_seen_ms)
            if after < len(times) and times[after] < row.deadline_ms:
                yield row


def wrongly_ended(
    plan: Plan, group_id: str, entries: list[Entry], refused: set[Place], rows: list[Row]
) -> Iterator[ExpirationRow]:
    """List the failures that were reported before, and the expirations of workers that had left or failed.

    Args:
        plan: the history's parameters.
        group_id: the group. Only one whose workers name their incarnations, and that is not forgotten, is looked at.
        entries: its events, in the order in which they count.
        refused: records that met a limit of the shard.
        rows: what was written about it.
    """
    numbered = {group.group_id for group in plan.groups if group.numbered}
    if group_id not in numbered or plan.coordinator.empty_group_retention_ms < plan.feed_ms:
        return
    beats = _beats(entries, refused)
    failed: set[tuple[str, str]] = set()
    for row in rows:
        if not isinstance(row, ExpirationRow):
            continue
        if row.failure is None and row.last_seen_ms not in beats[row.member_id]:
            yield row
        if row.failure is not None:
            if (row.member_id, row.failure) in failed:
                yield row
            failed.add((row.member_id, row.failure))


def _beats(entries: list[Entry], refused: set[Place]) -> dict[str, list[int]]:
    """List when each worker was heard of, epoch ms; nothing counts of an incarnation that has ended."""
    beats: dict[str, list[int]] = defaultdict(list)
    ended: set[tuple[str, int]] = set()
    for time_ms, record, event in entries:
        if not isinstance(event, Event) or (record.partition, record.offset) in refused:
            continue
        start = (event.member_id, -1 if event.incarnation is None else event.incarnation)
        if event.type is EventType.LEAVE and event.incarnation is not None:
            ended.add(start)
        elif event.type is EventType.HEARTBEAT and start not in ended:
            beats[event.member_id].append(time_ms)
    return beats
