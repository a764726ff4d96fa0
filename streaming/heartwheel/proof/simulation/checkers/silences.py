"""P1 without any rule: no worker expires that sent a heartbeat before its deadline, or that had ended in order.

For workers of presence groups the log shows this directly: each heartbeat keeps its worker alive, unless its
incarnation has left or failed before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.checkers.read_log import Place, PlacedRequest
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.world.sink import Row
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import HeartbeatType
from heartwheel.wire.verdict_rows import ExpirationRow


def check_silences(
    plan: Plan, group_id: str, entries: list[PlacedRequest], refused: set[Place], rows: list[Row]
) -> Iterator[BrokenPromise]:
    """Return every expiration of a worker that had sent a heartbeat in time, had ended, or was still alive.

    Args:
        entries: its events, in the order in which they count.
        refused: records that met a limit of the shard.
    """
    for row in _falsely_expired(plan, group_id, entries, refused, rows):
        yield BrokenPromise("P1", f"{group_id}: there is a heartbeat between {row.last_seen_ms} and the end of {row}")
    for row in _wrongly_ended(plan, group_id, entries, refused, rows):
        why = "the worker had ended before, or still lived, or its failure was reported before"
        yield BrokenPromise("P1", f"{group_id}: {why}: {row}")


def _falsely_expired(
    plan: Plan, group_id: str, entries: list[PlacedRequest], refused: set[Place], rows: list[Row]
) -> Iterator[ExpirationRow]:
    """Return the expirations of workers that sent a heartbeat in time, according to the log.

    Args:
        group_id: the group; one that is no presence group, or that stops being one, is not looked at.
        entries: its events, in order.
        refused: records that met a limit of the shard.
    """
    kinds = {group.group_id: group.kind for group in plan.groups}
    kinds |= {fed.group.group_id: fed.group.kind for fed in plan.relayed.groups}
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


def _wrongly_ended(
    plan: Plan, group_id: str, entries: list[PlacedRequest], refused: set[Place], rows: list[Row]
) -> Iterator[ExpirationRow]:
    """Return failures that were reported before, and expirations of workers that had left, had failed, or still lived.

    Args:
        group_id: the group. Only one whose workers name their incarnations, and that is not forgotten, is looked at.
        entries: its events, in the order in which they count.
        refused: records that met a limit of the shard.
    """
    numbered = {group.group_id for group in plan.groups if group.numbered}
    if group_id not in numbered or plan.coordinator.empty_group_retention_ms < plan.feed_ms:
        return
    beats = _beats(entries, refused)
    failed: set[tuple[str, str]] = set()
    for row in rows:
        if not isinstance(row, ExpirationRow):
            continue
        if row.failure is None and (
            row.last_seen_ms not in beats[row.member_id] or row.deadline_ms < _alive_until(entries, refused, row)
        ):
            yield row
        if row.failure is not None:
            if (row.member_id, row.failure) in failed:
                yield row
            failed.add((row.member_id, row.failure))


def _alive_until(entries: list[PlacedRequest], refused: set[Place], row: ExpirationRow) -> int:
    """Return the earliest time at which a worker may expire, epoch ms: by the last heartbeat of its latest live start.

    A late heartbeat of another start can only postpone that. A static worker may have been replaced by another member.
    """
    known = [
        (time_ms, event)
        for time_ms, record, event in entries
        if isinstance(event, Event) and event.member_id == row.member_id and time_ms < row.deadline_ms
        if (record.partition, record.offset) not in refused and row.group_instance_id is None
    ]
    # A start that ended shows that those before it are over, whether or not their own end was ever written.
    ended = max((event.incarnation or 0 for _, event in known if event.type is EventType.LEAVE), default=0)
    beats = [
        (event.incarnation, place, time_ms + event.session_timeout_ms)
        for place, (time_ms, event) in enumerate(known)
        if event.type is EventType.HEARTBEAT and event.session_timeout_ms is not None
        if event.incarnation is not None and event.incarnation > ended
    ]
    return max(beats, default=(0, 0, 0))[2]


def _beats(entries: list[PlacedRequest], refused: set[Place]) -> dict[str, list[int]]:
    """Return the times of each worker's heartbeats, epoch ms; those of ended incarnations do not count."""
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
