"""An incident in the form of a message; `docs/webhook.md` describes every field."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.readers.notify.incident import ClosedBy, ExpiredMember, Incident, IncidentStep
from heartwheel.readers.notify.troubles import GroupTrouble

MEMBERS_NAMED_MAX: Final = 20
"""Most members of an incident that a message names."""


class MemberPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member in a message; only a broker's log has `advice`, `cause` and `evidence`, and it may lack some times."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    reason: str
    failure: str | None
    last_seen_ms: int | None
    session_timeout_ms: int | None
    deadline_ms: int
    lateness_ms: int | None
    generation_id: int
    times: int
    returned_ms: int | None
    advice: str = ""
    cause: str = ""
    evidence: str | None = None


class IncidentPayload(msgspec.Struct, frozen=True, kw_only=True):
    """An incident in a message: always whole, so that a lost message does no harm."""

    incident_id: str
    group_id: str | None
    step: IncidentStep
    closed_by: ClosedBy | None
    sequence: int
    opened_ms: int
    expired: int
    expired_new: int
    expired_members: int
    returned: int
    missing: int
    reasons: dict[str, int]
    troubles: tuple[GroupTrouble, ...]
    members: tuple[MemberPayload, ...]
    members_left_out: int


def incident_payload(
    incident: Incident, step: IncidentStep, closed_by: ClosedBy | None, *, expired_before: int
) -> IncidentPayload:
    """Return an incident in the form of a message.

    Args:
        step: the subject of the message.
        closed_by: why it is over, if it is.
        expired_before: expirations that earlier messages reported.
    """
    # Missing members matter more than those that are back, and the latest more than the earliest.
    members = sorted(
        incident.members.values(), key=lambda member: (member.returned_ms is not None, -member.row.deadline_ms)
    )
    return IncidentPayload(
        incident_id=incident.id,
        group_id=incident.group_id,
        step=step,
        closed_by=closed_by,
        sequence=incident.sequence,
        opened_ms=incident.opened_ms,
        expired=incident.expired,
        expired_new=incident.expired - expired_before,
        expired_members=incident.expired_members,
        returned=incident.returned,
        missing=incident.missing,
        reasons=dict(incident.reasons),
        troubles=tuple(incident.troubles),
        members=tuple(map(_member, members[:MEMBERS_NAMED_MAX])),
        members_left_out=max(0, len(members) - MEMBERS_NAMED_MAX) + incident.untracked,
    )


def _member(member: ExpiredMember) -> MemberPayload:
    row = member.row
    return MemberPayload(
        member_id=row.member_id,
        group_instance_id=row.group_instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        reason=row.reason,
        failure=row.failure,
        last_seen_ms=row.last_seen_ms,
        session_timeout_ms=row.session_timeout_ms,
        deadline_ms=row.deadline_ms,
        lateness_ms=row.lateness_ms,
        generation_id=row.generation_id,
        times=member.times,
        returned_ms=member.returned_ms,
        advice=row.advice,
        cause=row.cause,
        evidence=row.evidence,
    )
