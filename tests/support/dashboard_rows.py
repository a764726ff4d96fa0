"""Rows of the engine's topics, as a follower hands them to a picture; what a test does not care about has a default."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.wire.job import BatchFigures, JobRow, Phase
from heartwheel.wire.status import AtRiskMember, StatusRow, WheelLevel
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_offsets = itertools.count()


def _id(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def topic_row(source: OutputTopic, row: Any, append_ms: int) -> TopicRow:
    """Put a row where a follower would have found it, at an offset of its own."""
    return TopicRow(source, getattr(row, "shard", 0), next(_offsets), append_ms, row)


def expired(
    group_id: str,
    member_id: str,
    deadline_ms: int,
    *,
    reason: str = "session_timeout",
    session_ms: int = 6_000,
    late_ms: int = 640,
    **fields: Any,
) -> TopicRow:
    """Tell an expiration: decided `late_ms` after its deadline, appended a little later."""
    known: dict[str, Any] = {
        "id": _id(group_id, member_id, deadline_ms, reason),
        "group_instance_id": None,
        "client_id": "consumer",
        "client_host": "/10.0.0.7",
        "generation_id": 3,
        "group_state": "Stable",
        "shard": 0,
    }
    row = ExpirationRow(
        **{**known, **fields},
        group_id=group_id,
        member_id=member_id,
        reason=reason,
        session_timeout_ms=session_ms,
        last_seen_ms=deadline_ms - session_ms,
        deadline_ms=deadline_ms,
        detected_ms=deadline_ms + late_ms,
        lateness_ms=late_ms,
    )
    return topic_row(OutputTopic.EXPIRATIONS, row, deadline_ms + late_ms + 90)


def triggered(kind: str, group_id: str, time_ms: int, **fields: Any) -> TopicRow:
    """Tell a row of the triggers topic: `rebalance_triggered`, `rebalance_completed` or `group_empty`."""
    known: dict[str, Any] = {
        "id": _id(group_id, kind, time_ms, fields.get("generation_id")),
        "generation_id": 3,
        "reason": "",
        "cause": None,
        "deadline_ms": None,
        "awaiting": (),
        "leader": None,
        "member_count": 0,
        "removed": (),
        "joined": (),
        "duration_ms": None,
        "shard": 0,
    }
    known |= fields
    counts = {f"{name}_count": len(known[name]) for name in ("awaiting", "removed", "joined")}
    row = TriggerRow(**{**counts, **known}, type=kind, group_id=group_id, time_ms=time_ms, detected_ms=time_ms + 500)
    return topic_row(OutputTopic.TRIGGERS, row, time_ms + 600)


def status(shard: int, batch_ms: int, **fields: Any) -> TopicRow:
    """Tell how a shard stands after a batch."""
    known: dict[str, Any] = {
        "clock_ms": batch_ms - 1_000,
        "held": False,
        "members": 40,
        "groups": 4,
        "groups_by_state": {"Stable": 4},
        "groups_by_kind": {"classic": 4},
        "wheel": (WheelLevel(tick_ms=100, entries=3, slots=(2, 1) + (0,) * 18),),
        "wheel_moves": 0,
        "wheel_fires": 0,
        "at_risk": (),
        "strays": {},
        "counts": {"records": 20},
        "totals": {},
        "state_bytes": 48_000,
    }
    return topic_row(
        OutputTopic.STATUS, StatusRow(shard=shard, batch_ms=batch_ms, **{**known, **fields}), batch_ms + 400
    )


def at_risk(group_id: str, member_id: str, deadline_ms: int, session_ms: int | None = None) -> AtRiskMember:
    """Name a member that is near its expiry."""
    return AtRiskMember(group_id=group_id, member_id=member_id, deadline_ms=deadline_ms, session_timeout_ms=session_ms)


def job(at_ms: int, *, phase: Phase = Phase.LIVE, **fields: Any) -> TopicRow:
    """Tell how the job as a whole stands."""
    batch: dict[str, Any] = {
        "batch_id": at_ms // 1_000 % 100_000,
        "ended_ms": at_ms,
        "duration_ms": 420,
        "read_ms": 310,
        "records": 160,
        "behind": 0,
        "expired": 0,
        "triggers": 0,
        "rejected": 0,
    }
    batch |= {name: fields.pop(name) for name in tuple(fields) if name in batch}
    known: dict[str, Any] = {
        "started_ms": at_ms - 3_600_000,
        "phase_since_ms": at_ms - 3_580_000,
        "fault": None,
        "faults": 0,
        "batches": 3_580,
        "records": 572_800,
        "trigger_interval_ms": 1_000,
        "tick_interval_ms": 200,
        "wheel_tick_ms": 100,
        "shards": 8,
        "version": "0.1.0",
    }
    row = JobRow(at_ms=at_ms, phase=phase, last_batch=BatchFigures(**batch), **{**known, **fields})
    return topic_row(OutputTopic.JOB, row, at_ms)
