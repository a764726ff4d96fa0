"""The status of a shard: one row a trigger on a compacted topic, from which dashboards and metrics are fed."""

from __future__ import annotations

import itertools

import msgspec

from heartwheel.shard.figures import AtRisk
from heartwheel.shard.shard import Outcome, Shard

STRAYS_MAX = 10
"""How many groups with records in more than one partition a status row names."""

STANDING_MAX = 10
"""How many partitions whose time stands still a status row names."""

AT_RISK_BYTES_MAX = 64 * 1024
"""Most UTF-8 bytes of the groups and members near their expiry that a status row names, whatever `at_risk_count` says:
the row must stay below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""


class WheelLevel(msgspec.Struct, kw_only=True):
    """Hold how full one level of the wheel is: `slots` counts the timers of each slot."""

    tick_ms: int
    entries: int
    slots: tuple[int, ...]


class AtRiskMember(msgspec.Struct, kw_only=True):
    """Hold one of the members nearest to expiry."""

    group_id: str
    member_id: str
    deadline_ms: int


class StatusRow(msgspec.Struct, kw_only=True):
    """Hold one row of the status topic; `conf/schemas/heartwheel-status.schema.json` describes it.

    Args:
        shard: which shard.
        batch_ms: timestamp of the trigger, epoch ms.
        clock_ms: up to when every partition is decided, so that timers have fired, epoch ms; -1 while a partition gave
            no time.
        held: whether a backlog is being read: the newest record read is old.
        members: members, pending ones included.
        groups: groups, those without members included.
        groups_by_state: count by Kafka's state name.
        groups_by_kind: count by kind of group.
        wheel: levels, the finest first.
        wheel_moves: timers filed again since the shard was made.
        wheel_fires: timers that came out since the shard was made.
        at_risk: members nearest to expiry, nearest first.
        strays: groups with records in more than one partition, and how many.
        counts: what happened in this batch, by name.
        totals: the same since the shard was made.
        state_bytes: size of the encoded state.
        newest_ms: time of the newest record read of any partition, epoch ms.
        waiting: records that wait until what comes before them has been read.
        standing: partitions whose time stands still, and since when, epoch ms; -1 if it was never known.
    """

    shard: int
    batch_ms: int
    clock_ms: int
    held: bool
    members: int
    groups: int
    groups_by_state: dict[str, int]
    groups_by_kind: dict[str, int]
    wheel: tuple[WheelLevel, ...]
    wheel_moves: int
    wheel_fires: int
    at_risk: tuple[AtRiskMember, ...]
    strays: dict[str, int]
    counts: dict[str, int]
    totals: dict[str, int]
    state_bytes: int
    newest_ms: int = -1
    waiting: int = 0
    standing: dict[str, int] = {}


def status_of(
    shard: Shard, outcome: Outcome, *, index: int, batch_ms: int, held: bool, at_risk_count: int, state_bytes: int
) -> StatusRow:
    """Describe a shard after a batch.

    Args:
        shard: after `apply`.
        outcome: what `apply` returned.
        index: the shard's number.
        batch_ms: timestamp of the trigger, epoch ms.
        held: whether a backlog is being read.
        at_risk_count: how many members nearest to expiry to name.
        state_bytes: size of the encoded state.
    """
    at_risk = shard.figures.at_risk(at_risk_count)
    return StatusRow(
        shard=index,
        batch_ms=batch_ms,
        clock_ms=shard.clock_ms,
        held=held,
        members=shard.member_count,
        groups=shard.group_count,
        groups_by_state=shard.figures.groups_by_state(),
        groups_by_kind=shard.figures.groups_by_kind(),
        wheel=tuple(
            WheelLevel(tick_ms=level.tick_ms, entries=level.entries, slots=level.slot_counts)
            for level in shard.figures.occupancy()
        ),
        wheel_moves=shard.figures.wheel_stats.moves,
        wheel_fires=shard.figures.wheel_stats.fires,
        at_risk=tuple(AtRiskMember(**member._asdict()) for member in _nearest(at_risk)),
        strays=shard.figures.strays(STRAYS_MAX),
        counts=dict(outcome.counts),
        totals=dict(shard.totals),
        state_bytes=state_bytes,
        newest_ms=shard.newest_ms,
        waiting=shard.waiting_count,
        standing={str(partition): since_ms for partition, since_ms in shard.standing()[:STANDING_MAX]},
    )


def _nearest(members: list[AtRisk]) -> list[AtRisk]:
    ends = itertools.accumulate(len(member.group_id.encode()) + len(member.member_id.encode()) for member in members)
    return members[: sum(end <= AT_RISK_BYTES_MAX for end in ends)]
