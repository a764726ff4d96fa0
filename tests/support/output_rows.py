"""Rows of the output topics, made from a few words."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.wire.job import BatchFigures, JobRow, Phase, TickerState
from heartwheel.wire.status import AtRiskMember, StatusRow, WheelLevel
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow | StatusRow | JobRow
"""A row of an output topic."""

T0 = 1_795_000_000_000
"""A moment, epoch ms."""


def expired(group: str, member: str, at_ms: int = T0, **changes: Any) -> ExpirationRow:
    """Make the expiration of a member of a presence group, whose id is its own."""
    fields: dict[str, Any] = {
        "id": f"{group}/{member}/{at_ms}",
        "group_id": group,
        "member_id": member,
        "group_instance_id": None,
        "client_id": None,
        "client_host": "/10.0.0.7",
        "generation_id": 3,
        "reason": "session_timeout",
        "last_seen_ms": at_ms - 6_000,
        "session_timeout_ms": 6_000,
        "deadline_ms": at_ms,
        "detected_ms": at_ms + 1_200,
        "lateness_ms": 1_200,
        "group_state": "Stable",
        "shard": 0,
    }
    return ExpirationRow(**(fields | changes))


def joined(group: str, *members: str, at_ms: int = T0 + 10_000) -> TriggerRow:
    """Make the completed rebalance that brings members into a group."""
    return TriggerRow(
        id=f"{group}/{members}/{at_ms}",
        type="rebalance_completed",
        group_id=group,
        generation_id=4,
        reason="all members joined",
        cause="all_joined",
        time_ms=at_ms,
        deadline_ms=None,
        awaiting=(),
        awaiting_count=0,
        leader=None,
        member_count=len(members),
        removed=(),
        removed_count=0,
        joined=members,
        joined_count=len(members),
        duration_ms=10,
        detected_ms=at_ms + 1_000,
        shard=0,
    )


def emptied(group: str, last: str | None = None, *, at_ms: int = T0) -> TriggerRow:
    """Make the row of a group whose last member has gone, as its shard writes it.

    Args:
        last: who has gone, of a presence group; a classic group's row does not name them.
    """
    return msgspec.structs.replace(
        joined(group, at_ms=at_ms),
        id=f"{group}/empty/{at_ms}",
        type="group_empty",
        reason=f"Group {group} with generation 4 is now empty.",
        cause="no_members",
        removed=() if last is None else (last,),
        removed_count=0 if last is None else 1,
        duration_ms=6_900 if last is None else 0,
        group_kind="classic" if last is None else "presence",
    )


_SOURCES: Final = {
    ExpirationRow: OutputTopic.EXPIRATIONS,
    TriggerRow: OutputTopic.TRIGGERS,
    StatusRow: OutputTopic.STATUS,
    JobRow: OutputTopic.JOB,
}


def topic_rows(*rows: Row, offset: int = 0) -> list[TopicRow]:
    """Put rows into partition 0 of their topics, one after the other."""
    return [TopicRow(_SOURCES[type(row)], 0, offset + i, _known_ms(row), row) for i, row in enumerate(rows)]


def _known_ms(row: Row) -> int:
    if isinstance(row, StatusRow):
        return row.batch_ms
    return row.at_ms if isinstance(row, JobRow) else row.detected_ms


def begun(group: str, *awaiting: str, at_ms: int = T0, deadline_ms: int | None = T0 + 30_000) -> TriggerRow:
    """Make the rebalance that an expiration begins, and that waits for members."""
    return msgspec.structs.replace(
        joined(group, at_ms=at_ms),
        id=f"{group}/begun/{at_ms}",
        type="rebalance_triggered",
        cause="member_expired",
        deadline_ms=deadline_ms,
        awaiting=awaiting,
        awaiting_count=len(awaiting),
        duration_ms=None,
    )


def status(shard: int = 0, *at_risk: AtRiskMember, batch_ms: int = T0, members: int = 9) -> StatusRow:
    """Make the status of a shard after a batch."""
    return StatusRow(
        shard=shard,
        batch_ms=batch_ms,
        clock_ms=batch_ms - 1_500,
        held=False,
        members=members,
        groups=3,
        groups_by_state={"Stable": 3},
        groups_by_kind={"presence": 3},
        wheel=(WheelLevel(tick_ms=100, entries=0, slots=(0,) * 20),),
        wheel_moves=0,
        wheel_fires=0,
        at_risk=at_risk,
        strays={},
        counts={"records": 40},
        totals={},
        state_bytes=1_000,
    )


def job(at_ms: int = T0, **changes: object) -> JobRow:
    """Make the row of a job that is live."""
    batch = BatchFigures(
        batch_id=7,
        ended_ms=at_ms,
        duration_ms=340,
        read_ms=200,
        records=40,
        behind=0,
        expired=1,
        triggers=1,
        rejected=0,
    )
    row = JobRow(
        at_ms=at_ms,
        started_ms=at_ms - 60_000,
        phase=Phase.LIVE,
        phase_since_ms=at_ms - 50_000,
        fault=None,
        faults=0,
        batches=7,
        records=280,
        last_batch=batch,
        trigger_interval_ms=1_000,
        tick_interval_ms=200,
        wheel_tick_ms=100,
        ticker=TickerState(
            run="0123456789abcdef",
            partitions=2,
            written=100,
            failed=0,
            lag_ms=150,
            silent_count=0,
            silent=(),
            reason="",
        ),
        shards=1,
        version="0.1.0",
    )
    return msgspec.structs.replace(row, **changes)
