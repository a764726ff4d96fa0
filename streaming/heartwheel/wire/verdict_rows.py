"""The rows of verdicts in the topics `member-expirations` and `rebalance-triggers`."""

from __future__ import annotations

import itertools
from typing import Final

import msgspec

from heartwheel.wire.verdicts import (
    EPOCH_KINDS,
    PRESENCE,
    TRIGGER_TYPES,
    Cause,
    ExpiryReason,
    Kind,
    Verdict,
    verdict_id,
)

NAMES_MAX: Final = 100
"""Most members that a list of a trigger's row names; a group of ten thousand must not make a huge row (P6)."""

NAMES_BYTES_MAX: Final = 32 * 1024
"""Most UTF-8 bytes of the names in one list of a row. JSON may write a byte as six, as in `\\u0000`; the longest row
stays below the megabyte that a Kafka producer sends (`test_limits_of_rows.py`)."""

REASON_CHARS_MAX: Final = 4096
"""Most characters of a row's reason: Kafka's own words name every member that left or did not sync."""


class ExpirationRow(msgspec.Struct, kw_only=True, gc=False):
    """One row of the expirations topic; `conf/schemas/member-expirations.schema.json` describes it.

    `group_kind` is that of `TriggerRow`. Members of groups with member epochs have a `member_epoch`, -2 for a static
    member that was away. Both are `None` in rows of earlier releases. A poll timeout of such a member is known from its
    return under the same id: `deadline_ms` is the time of the return, `last_seen_ms` that of its leave, and
    `member_epoch` the epoch with which it left, -1 or -2. For a failed worker `failure` says how it failed, and
    `deadline_ms` when that was reported.
    """

    id: str
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    generation_id: int
    reason: str
    last_seen_ms: int
    session_timeout_ms: int
    deadline_ms: int
    detected_ms: int
    lateness_ms: int
    group_state: str
    shard: int
    renewed_ms: int | None = None
    group_kind: str | None = None
    member_epoch: int | None = None
    failure: str | None = None

    @property
    def out_ms(self) -> int:
        """When the member was out of the group, epoch ms: the deadline, or the leave before a known return."""
        is_known_by_return = self.reason == ExpiryReason.POLL_TIMEOUT and self.group_kind in EPOCH_KINDS
        return self.last_seen_ms if is_known_by_return and (self.member_epoch or 0) < 0 else self.deadline_ms


class TriggerRow(msgspec.Struct, kw_only=True, gc=False):
    """One row of the triggers topic; `conf/schemas/rebalance-triggers.schema.json` describes it.

    `awaiting`, `removed` and `joined` name the first `NAMES_MAX` members, or as many as `NAMES_BYTES_MAX` allows; their
    counts are complete. `group_kind` is `classic`, `loaded`, `presence`, `consumer`, `share` or `streams`; for the last
    three `generation_id` is the epoch. It is `None` in rows of earlier releases. `loads` is the number of loads of the
    group in the millisecond of `time_ms`.
    """

    id: str
    type: str
    group_id: str
    generation_id: int
    reason: str
    cause: str | None
    time_ms: int
    deadline_ms: int | None
    awaiting: tuple[str, ...]
    awaiting_count: int
    leader: str | None
    member_count: int
    removed: tuple[str, ...]
    removed_count: int
    joined: tuple[str, ...] = ()
    joined_count: int = 0
    duration_ms: int | None
    detected_ms: int
    shard: int
    group_kind: str | None = None
    loads: int = 0

    @property
    def is_rebalance(self) -> bool:
        """Whether members had to join again.

        Members of a presence group only come and go, and do not wait for each other. Members of groups with member
        epochs do not wait either: each moves to the new epoch by itself.

        Rows of earlier releases do not name the kind of their group. Only in presence groups does the join phase end
        the moment it begins, and the completed one has no leader.
        """
        if self.group_kind is not None:
            return self.group_kind != PRESENCE and self.group_kind not in EPOCH_KINDS
        if self.type == TRIGGER_TYPES[Kind.REBALANCE_STARTED]:
            return self.deadline_ms is None or self.deadline_ms > self.time_ms
        if self.type == TRIGGER_TYPES[Kind.REBALANCE_COMPLETED]:
            is_caught_up = self.cause == Cause.GENERATION_ADVANCED
            return self.leader is not None or self.duration_ms != 0 or is_caught_up
        return True


def row_of(verdict: Verdict, *, shard: int, detected_ms: int) -> ExpirationRow | TriggerRow:
    """Return a verdict as the row of its topic.

    Args:
        verdict: a verdict for which `topic_of` returns a topic.
        shard: the shard that decided it.
        detected_ms: timestamp of the trigger that decided it, epoch ms; the same on every replay of that trigger.
    """
    if verdict.expiry_reason is not None:
        return _expiration(verdict, verdict.expiry_reason, shard, detected_ms)
    return _trigger(verdict, shard, detected_ms)


def _expiration(verdict: Verdict, reason: ExpiryReason, shard: int, detected_ms: int) -> ExpirationRow:
    return ExpirationRow(
        id=verdict_id(verdict),
        group_id=verdict.group_id,
        member_id=verdict.member_id or "",
        group_instance_id=verdict.group_instance_id,
        client_id=verdict.client_id,
        client_host=verdict.client_host,
        generation_id=verdict.generation_id,
        reason=reason,
        last_seen_ms=verdict.last_seen_ms or 0,
        session_timeout_ms=verdict.session_timeout_ms or 0,
        deadline_ms=verdict.time_ms,
        detected_ms=detected_ms,
        lateness_ms=detected_ms - verdict.time_ms,
        group_state=verdict.group_state,
        shard=shard,
        renewed_ms=verdict.renewed_ms,
        group_kind=verdict.group_kind or None,
        member_epoch=verdict.member_epoch,
        failure=verdict.failure,
    )


def _trigger(verdict: Verdict, shard: int, detected_ms: int) -> TriggerRow:
    return TriggerRow(
        id=verdict_id(verdict),
        type=TRIGGER_TYPES[verdict.kind],
        group_id=verdict.group_id,
        generation_id=verdict.generation_id,
        reason=_cut(verdict.reason),
        cause=verdict.cause,
        time_ms=verdict.time_ms,
        deadline_ms=verdict.deadline_ms,
        awaiting=first_names(verdict.awaiting),
        awaiting_count=len(verdict.awaiting),
        leader=verdict.leader,
        member_count=verdict.member_count,
        removed=first_names(verdict.removed),
        removed_count=len(verdict.removed),
        joined=first_names(verdict.joined),
        joined_count=len(verdict.joined),
        duration_ms=verdict.duration_ms,
        detected_ms=detected_ms,
        shard=shard,
        group_kind=verdict.group_kind or None,
        loads=verdict.loads,
    )


def first_names(member_ids: tuple[str, ...]) -> tuple[str, ...]:
    """Return as many of the members as a row may name, in their order."""
    if not member_ids:
        return member_ids
    first = member_ids[:NAMES_MAX]
    ends = itertools.accumulate(len(member_id.encode()) for member_id in first)
    return first[: sum(end <= NAMES_BYTES_MAX for end in ends)]


def _cut(reason: str) -> str:
    return reason if len(reason) <= REASON_CHARS_MAX else f"{reason[:REASON_CHARS_MAX]} ..."
