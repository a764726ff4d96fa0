"""Explained events as the rows that the dashboard shows: those of the engine's topics, made from a broker's log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from heartwheel.live.expiration import FROM_A_LOG, LoggedExpiration
from heartwheel.live.topic_rows import Source, TopicRow
from heartwheel.wire.explained import ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpiryReason, TriggerRow

REASONS: Final = {
    Happened.EXPIRED: ExpiryReason.SESSION_TIMEOUT,
    Happened.REMOVED_AT_REBALANCE: ExpiryReason.REBALANCE_TIMEOUT,
    Happened.SYNC_TIMEOUT: ExpiryReason.SYNC_TIMEOUT,
    Happened.PENDING_EXPIRED: ExpiryReason.PENDING_TIMEOUT,
    Happened.REVOCATION_TIMEOUT: ExpiryReason.REVOCATION_TIMEOUT,
    Happened.POLL_TIMEOUT: ExpiryReason.POLL_TIMEOUT,
}
"""What ends a member by a timer, and how page Expired names it."""


def rows_of_log(events: Iterable[ExplainedEvent]) -> Iterator[TopicRow]:
    """Shape events as the rows that a picture takes.

    Args:
        events: in the order of time.

    Returns:
        A row for each expiration, and those that begin and end each rebalance; nothing for other events.
    """
    for event in events:
        if event.kind in REASONS:
            yield _topic_row(Source.EXPIRATIONS, event, _expiration(event))
        elif event.kind in {Happened.REBALANCE, Happened.GROUP_EMPTY}:
            yield _topic_row(Source.TRIGGERS, event, _begun(event))
            yield _topic_row(Source.TRIGGERS, event, _ended(event))


def _topic_row(source: Source, event: ExplainedEvent, row: LoggedExpiration | TriggerRow) -> TopicRow:
    return TopicRow(source, 0, event.evidence.line, event.time_ms, row)


def _expiration(event: ExplainedEvent) -> LoggedExpiration:
    limit_ms = event.session_timeout_ms
    if event.kind not in {Happened.EXPIRED, Happened.PENDING_EXPIRED}:
        limit_ms = event.rebalance_timeout_ms or event.duration_ms
    said = f"The broker's log says so: {event.evidence.file}, line {event.evidence.line}."
    return LoggedExpiration(
        id=_id(event, "expired"),
        group_id=event.group_id,
        member_id=event.member_id or "",
        group_instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        generation_id=_generation(event),
        reason=REASONS[event.kind].value,
        last_seen_ms=event.time_ms - (limit_ms or 0),
        session_timeout_ms=limit_ms or 0,
        deadline_ms=event.time_ms,
        detected_ms=event.time_ms,
        lateness_ms=0,
        group_state="",
        shard=FROM_A_LOG,
        returned_ms=event.returned_ms,
        explanation=(*event.explanation, said),
        evidence=f"{event.evidence.file}:{event.evidence.line}",
    )


def _begun(event: ExplainedEvent) -> TriggerRow:
    started_ms = event.time_ms if event.started_ms is None else event.started_ms
    joined = event.caused_by if event.reason in {"member_joined", "static_member_updated"} else []
    return msgspec.structs.replace(
        _ended(event),
        id=_id(event, "begun"),
        type="rebalance_triggered",
        generation_id=max(0, _generation(event) - 1),
        time_ms=started_ms,
        detected_ms=started_ms,
        leader=None,
        removed=(),
        removed_count=0,
        joined=tuple(joined),
        joined_count=len(joined),
        duration_ms=None,
    )


def _ended(event: ExplainedEvent) -> TriggerRow:
    return TriggerRow(
        id=_id(event, "ended"),
        type="group_empty" if event.kind is Happened.GROUP_EMPTY else "rebalance_completed",
        group_id=event.group_id,
        generation_id=_generation(event),
        reason=event.reason_text or event.reason.replace("_", " "),
        cause=event.reason,
        time_ms=event.time_ms,
        deadline_ms=None,
        awaiting=(),
        awaiting_count=0,
        leader="" if event.group_type == "classic" else None,
        member_count=event.member_count or 0,
        removed=tuple(event.blocked_by),
        removed_count=len(event.blocked_by),
        duration_ms=event.duration_ms,
        detected_ms=event.time_ms,
        shard=FROM_A_LOG,
    )


def _generation(event: ExplainedEvent) -> int:
    number = event.epoch if event.generation_id is None else event.generation_id
    return -1 if number is None else number


def _id(event: ExplainedEvent, what: str) -> str:
    parts = (what, event.kind, event.group_id, event.member_id, event.evidence.file, event.evidence.line)
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
