"""Outcomes: how each operation ended, under an id that makes a replay harmless."""

from __future__ import annotations

import enum
import hashlib

import msgspec


class Ending(enum.StrEnum):
    """How an operation ended."""

    COMPLETED = "completed"
    EXPIRED = "expired"


class OutcomeRow(msgspec.Struct, kw_only=True, frozen=True):
    """One row of the outcomes topic; `conf/schemas/operation-outcomes.schema.json` describes it.

    Args:
        id: the outcome's id, the same on every replay.
        operation_id: the operation that ended.
        outcome: `completed` or `expired`.
        condition: what it waited for: `keys`, `offsets` or `from_bytes`.
        keys: the keys or partitions that it watched.
        lacking: those of them that were still missing at its end; empty if it completed by its condition.
        completed_by: the key that completed it; null if it was its `operation_id`, if the condition held at the watch,
            or if it expired.
        bytes_available: bytes that a fetch could read at its end; null for other conditions.
        watched_ms: effective append time of the watch, epoch ms.
        timeout_ms: how long it was allowed to take, ms.
        deadline_ms: when it had to be complete, epoch ms.
        time_ms: when it ended: effective append time of what completed it, or the deadline; epoch ms.
        detected_ms: timestamp of the trigger that decided it, epoch ms.
        lateness_ms: from `time_ms` to `detected_ms`.
        shard: the shard that decided it.
    """

    id: str
    operation_id: str
    outcome: str
    condition: str
    keys: tuple[str, ...]
    lacking: tuple[str, ...]
    completed_by: str | None
    bytes_available: int | None
    watched_ms: int
    timeout_ms: int
    deadline_ms: int
    time_ms: int
    detected_ms: int
    lateness_ms: int
    shard: int


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A shard's decision about one operation; the fields are those of `OutcomeRow`."""

    operation_id: str
    ending: Ending
    condition: str
    keys: tuple[str, ...]
    lacking: tuple[str, ...]
    watched_ms: int
    timeout_ms: int
    time_ms: int
    completed_by: str | None = None
    bytes_available: int | None = None

    @property
    def deadline_ms(self) -> int:
        """When it had to be complete, epoch ms."""
        return self.watched_ms + self.timeout_ms


def outcome_id(operation_id: str, watched_ms: int) -> str:
    """Return the 128-bit id of an outcome.

    The ending is not part of it: if an operation could ever complete *and* expire, both outcomes would have the same
    id, and a consumer that drops duplicates would keep one of them. The time of the watch is part of it: an
    `operation_id` that is used again after it was forgotten is another operation.
    """
    return hashlib.blake2b(msgspec.json.encode((operation_id, watched_ms)), digest_size=16).hexdigest()


def outcome_row(ended: Ended, *, shard: int, detected_ms: int) -> OutcomeRow:
    """Return a decision as the row of its topic.

    Args:
        ended: the decision.
        shard: the shard that decided it.
        detected_ms: timestamp of the trigger that decided it, epoch ms; the same on every replay of that trigger.
    """
    return OutcomeRow(
        id=outcome_id(ended.operation_id, ended.watched_ms),
        operation_id=ended.operation_id,
        outcome=ended.ending.value,
        condition=ended.condition,
        keys=ended.keys,
        lacking=ended.lacking,
        completed_by=ended.completed_by,
        bytes_available=ended.bytes_available,
        watched_ms=ended.watched_ms,
        timeout_ms=ended.timeout_ms,
        deadline_ms=ended.deadline_ms,
        time_ms=ended.time_ms,
        detected_ms=detected_ms,
        lateness_ms=detected_ms - ended.time_ms,
        shard=shard,
    )
