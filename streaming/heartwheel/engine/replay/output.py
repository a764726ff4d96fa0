"""Verdicts as lines: one JSON object each, in the vocabulary of the recordings."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.wire.verdicts import Verdict, topic_of, verdict_id


class VerdictLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line of output; the first six fields are always written, the others where they have a value.

    Args:
        t_ms: when it is true: the deadline of a timer, or the effective time of a request; epoch ms.
        kind: what was decided (`heartwheel.wire.verdicts.Kind`).
        member_id: the member, `None` for a verdict about the group.
        generation_id: the group's generation at that moment; for a started rebalance the old one.
        reason: Kafka's words.
        id: the id under which the job writes the same verdict to Kafka; absent for kinds that it does not write.

    `group_type` is `consumer`, `share` or `streams`, for groups with member epochs; their `generation_id` is the epoch.
    The other fields are those of `heartwheel.wire.verdicts.Verdict`.
    """

    t_ms: int
    kind: str
    group_id: str
    member_id: str | None
    generation_id: int
    reason: str
    id: str = ""
    cause: str | None = None
    expiry_reason: str | None = None
    last_seen_ms: int | None = None
    session_timeout_ms: int | None = None
    group_state: str = ""
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    deadline_ms: int | None = None
    awaiting: tuple[str, ...] = ()
    leader: str | None = None
    member_count: int = 0
    removed: tuple[str, ...] = ()
    duration_ms: int | None = None
    epoch: int | None = None
    timeout_ms: int | None = None
    new_member_id: str | None = None
    group_type: str = ""


_TYPES: Final = frozenset({"consumer", "share", "streams"})


def encode_verdict(verdict: Verdict) -> bytes:
    """Encode a verdict as one line, without its line break."""
    line = VerdictLine(
        t_ms=verdict.time_ms,
        kind=verdict.kind,
        group_id=verdict.group_id,
        member_id=verdict.member_id,
        generation_id=verdict.generation_id,
        reason=verdict.reason,
        id=verdict_id(verdict) if topic_of(verdict) is not None else "",
        cause=verdict.cause,
        expiry_reason=verdict.expiry_reason,
        last_seen_ms=verdict.last_seen_ms,
        session_timeout_ms=verdict.session_timeout_ms,
        group_state=verdict.group_state,
        group_instance_id=verdict.group_instance_id,
        client_id=verdict.client_id,
        client_host=verdict.client_host,
        deadline_ms=verdict.deadline_ms,
        awaiting=verdict.awaiting,
        leader=verdict.leader,
        member_count=verdict.member_count,
        removed=verdict.removed,
        duration_ms=verdict.duration_ms,
        epoch=verdict.epoch,
        timeout_ms=verdict.timeout_ms,
        new_member_id=verdict.new_member_id,
        group_type=verdict.group_kind if verdict.group_kind in _TYPES else "",
    )
    return msgspec.json.encode(line)
