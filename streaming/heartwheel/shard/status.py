"""What a shard has to say about itself after a batch: its row of the status topic."""

from __future__ import annotations

import itertools

from heartwheel.shard.figures import AtRisk
from heartwheel.shard.shard import Outcome, Shard
from heartwheel.wire.status import AtRiskMember, StatusRow, WheelLevel

STRAYS_MAX = 10
"""How many groups with records in more than one partition a status row names."""

AT_RISK_BYTES_MAX = 64 * 1024
"""Most UTF-8 bytes of the groups and members near their expiry that a status row names, whatever `at_risk_count` says:
the row must stay below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""


def status_of(
    shard: Shard, outcome: Outcome, *, index: int, batch_ms: int, held: bool, at_risk_count: int, state_bytes: int
) -> StatusRow:
    """Describe a shard after a batch.

    Args:
        shard: after `apply`.
        outcome: what `apply` returned.
        index: the shard's number.
        batch_ms: timestamp of the trigger, epoch ms.
        held: whether its clock stands still.
        at_risk_count: how many members nearest to expiry to name.
        state_bytes: size of the encoded state.
    """
    at_risk = [] if held else shard.figures.at_risk(at_risk_count)
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
    )


def _nearest(members: list[AtRisk]) -> list[AtRisk]:
    ends = itertools.accumulate(len(member.group_id.encode()) + len(member.member_id.encode()) for member in members)
    return members[: sum(end <= AT_RISK_BYTES_MAX for end in ends)]
