"""What a shard has to say about itself after a batch: its row of the status topic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

from heartwheel.shard.batch import BatchResult
from heartwheel.shard.listing import Rebalancing
from heartwheel.shard.shard import Shard
from heartwheel.wire.status import AtRiskMember, ListedGroup, RebalancingGroup, StatusRow, WheelLevel

T = TypeVar("T")

STRAYS_MAX = 10
"""How many groups with records in more than one partition a status row names."""

STANDING_MAX = 10
"""How many partitions whose time stands still a status row names."""

AT_RISK_BYTES_MAX = 64 * 1024
"""Most UTF-8 bytes of the groups and members near their expiry that a status row names, whatever `at_risk_count` says:
the row must stay below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""

LISTED_MAX = 50
"""How many groups a status row lists, the next row the next ones."""

REBALANCING_MAX = 20
"""How many groups that rebalance a status row names."""

AWAITING_MAX = 10
"""How many of the members that such a group waits for are named."""

AWAITING_BYTES_MAX = 1024
"""Most UTF-8 bytes of those names."""

GROUPS_BYTES_MAX = 16 * 1024
"""Most UTF-8 bytes of the names in the list of groups, and as many in that of groups that rebalance."""


def status_of(
    shard: Shard, outcome: BatchResult, *, index: int, batch_ms: int, held: bool, at_risk_count: int, state_bytes: int
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
        at_risk=tuple(
            AtRiskMember(**member._asdict())
            for member in _fitting(at_risk, AT_RISK_BYTES_MAX, lambda member: (member.group_id, member.member_id))
        ),
        strays=shard.figures.strays(STRAYS_MAX),
        counts=dict(outcome.counts),
        totals=dict(shard.totals),
        state_bytes=state_bytes,
        newest_ms=shard.newest_ms,
        waiting=shard.waiting_count,
        standing={str(partition): since_ms for partition, since_ms in shard.standing()[:STANDING_MAX]},
        feeds=shard.time.passed_on(),
        listed=tuple(
            ListedGroup(**group._asdict())
            for group in _fitting(shard.listed(LISTED_MAX), GROUPS_BYTES_MAX, lambda group: (group.group_id,))
        ),
        rebalancing=tuple(
            RebalancingGroup(**group._asdict())
            for group in _fitting(
                [_brief(group) for group in shard.rebalancing(REBALANCING_MAX, AWAITING_MAX)],
                GROUPS_BYTES_MAX,
                lambda group: (group.group_id, *group.awaiting),
            )
        ),
    )


def _brief(group: Rebalancing) -> Rebalancing:
    """Name fewer of those that are waited for if their ids are long: one group must not take the room of all others."""
    return group._replace(awaiting=tuple(_fitting(list(group.awaiting), AWAITING_BYTES_MAX, lambda name: (name,))))


def _fitting(rows: list[T], bytes_max: int, names: Callable[[T], tuple[str, ...]]) -> list[T]:
    """Take the first rows, as many as their names fit into so many bytes of UTF-8."""
    ends = itertools.accumulate(sum(len(name.encode()) for name in names(row)) for row in rows)
    return rows[: sum(end <= bytes_max for end in ends)]
