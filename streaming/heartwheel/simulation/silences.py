"""P1 without any rule: was somebody expired who had been heard of before the deadline?

For workers of presence groups that can be read off the log: each heartbeat of theirs keeps them alive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from heartwheel.simulation.oracle import Entry, Place
from heartwheel.simulation.plan import Plan
from heartwheel.simulation.sink import Row
from heartwheel.wire.events import EventType
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
    beats: dict[str, list[int]] = defaultdict(list)
    for time_ms, record, event in entries:
        if event.type is EventType.HEARTBEAT and (record.partition, record.offset) not in refused:
            beats[event.member_id].append(time_ms)
    for row in rows:
        if isinstance(row, ExpirationRow):
            times = sorted(beats[row.member_id])
            after = bisect_right(times, row.last_seen_ms)
            if after < len(times) and times[after] < row.deadline_ms:
                yield row
