"""The status of a shard after a batch: its row of the status topic."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

from heartwheel.engine.shard.batch import BatchResult
from heartwheel.engine.shard.listing import ListedRebalance
from heartwheel.engine.shard.shard import Shard
from heartwheel.wire.status import AtRiskMember, ListedGroup, RebalancingGroup, StatusRow, WheelLevel

T = TypeVar("T")

STRAYS_MAX = 10
"""The number of groups with records in more than one partition in a status row."""

STALLED_MAX = 10
"""The number of partitions without progress in a status row."""

AT_RISK_BYTES_MAX = 64 * 1024
"""The most UTF-8 bytes of names of groups and members near their expiry in a status row, whatever `at_risk_count` is.
The row must stay below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""

LISTED_MAX = 50
"""The number of groups in a status row; the next row has the next ones."""

REBALANCING_MAX = 20
"""The number of groups that rebalance in a status row."""

AWAITING_MAX = 10
"""The number of members in a status row that such a group waits for."""

AWAITING_BYTES_MAX = 1024
"""The most UTF-8 bytes of their names."""

GROUPS_BYTES_MAX = 16 * 1024
"""The most UTF-8 bytes of the names in the list of groups, and as many in that of groups that rebalance."""


def status_of(
    shard: Shard, outcome: BatchResult, *, index: int, batch_ms: int, held: bool, at_risk_count: int, state_bytes: int
) -> StatusRow:
    """Return the status of a shard after a batch.

    Args:
        shard: the shard after `apply`.
        batch_ms: timestamp of the trigger, epoch ms.
        held: whether a backlog is being read.
        at_risk_count: the number of members nearest to expiry to list.
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
        standing={str(partition): since_ms for partition, since_ms in shard.stalled()[:STALLED_MAX]},
        feeds=shard.time.relayed_ms(),
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


def _brief(group: ListedRebalance) -> ListedRebalance:
    """Return a rebalance with fewer awaited members if their ids are long, so that one group leaves room for others."""
    return group._replace(awaiting=tuple(_fitting(list(group.awaiting), AWAITING_BYTES_MAX, lambda name: (name,))))


def _fitting(rows: list[T], bytes_max: int, names: Callable[[T], tuple[str, ...]]) -> list[T]:
    """Return the first rows whose names fit into so many bytes of UTF-8."""
    ends = itertools.accumulate(sum(len(name.encode()) for name in names(row)) for row in rows)
    return rows[: sum(end <= bytes_max for end in ends)]
