"""What a row and a derived verdict are about, and how a row contradicts itself."""

from __future__ import annotations

from typing import Final

from heartwheel.proof.audit.derived import Derived, Row
from heartwheel.proof.audit.recent import key_of
from heartwheel.wire.verdict_rows import ExpirationRow

EXPIRATIONS: Final = "expirations"
TRIGGERS: Final = "triggers"


def topic_of(row: Row) -> str:
    """Return the topic that a row belongs to."""
    return EXPIRATIONS if isinstance(row, ExpirationRow) else TRIGGERS


def member_of(row: Row) -> str | None:
    """Return the member that a row is about, if it is about one."""
    return row.member_id if isinstance(row, ExpirationRow) else None


def content_of(row: Row) -> int:
    """Return a hash of all fields but the time of detection, which a later trigger may write differently."""
    facts = [getattr(row, name) for name in row.__struct_fields__ if name not in ("detected_ms", "lateness_ms")]
    return key_of(*facts)


def subject_of(row: Row) -> int:
    """Return a key of what a row is about: the silence of a member, or the generation of a group."""
    if isinstance(row, ExpirationRow):
        return key_of("expired", row.group_id, row.member_id, row.last_seen_ms)
    return key_of(row.type, row.group_id, row.generation_id)


def subject_derived(verdict: Derived) -> int:
    """Return the key that `subject_of` gives the row of a verdict."""
    facts = verdict.facts
    if verdict.type == "expired":
        return key_of("expired", verdict.group_id, facts["member_id"], facts["last_seen_ms"])
    return key_of(verdict.type, verdict.group_id, facts["generation_id"])


def own_differences(row: Row) -> list[str]:
    """Return the fields of a row that contradict others of its fields."""
    if isinstance(row, ExpirationRow) and row.lateness_ms != row.detected_ms - row.deadline_ms:
        return [f"lateness_ms is {row.lateness_ms}, by its own times {row.detected_ms - row.deadline_ms}"]
    return []


def claim_of(row: Row) -> str:
    """Return in words what a row says."""
    if isinstance(row, ExpirationRow):
        return f"expired, {row.reason}, deadline {row.deadline_ms}, last seen {row.last_seen_ms}"
    return f"{row.type} of generation {row.generation_id} at {row.time_ms}, {row.cause}"
