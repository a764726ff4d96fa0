"""An incident as a message tells it; `docs/webhook.md` describes every field."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.notify.incident import ClosedBy, Gone, Incident, Step

MEMBERS_NAMED_MAX: Final = 20
"""Most members of an incident that a message names."""


class ToldMember(msgspec.Struct, frozen=True, kw_only=True):
    """Hold a member as a message names it."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None
    reason: str
    last_seen_ms: int
    session_timeout_ms: int
    deadline_ms: int
    lateness_ms: int
    generation_id: int
    times: int
    returned_ms: int | None


class ToldIncident(msgspec.Struct, frozen=True, kw_only=True):
    """Hold an incident as a message tells it: always the whole of it, so that a message that was lost is no harm."""

    incident_id: str
    group_id: str | None
    step: Step
    closed_by: ClosedBy | None
    sequence: int
    opened_ms: int
    expired: int
    expired_new: int
    returned: int
    missing: int
    reasons: dict[str, int]
    members: tuple[ToldMember, ...]
    members_left_out: int


def told(incident: Incident, step: Step, closed_by: ClosedBy | None, *, expired_before: int) -> ToldIncident:
    """Shape an incident for a message.

    Args:
        incident: as it is now.
        step: what the message says about it.
        closed_by: why it is over, if it is.
        expired_before: expirations that earlier messages have told.
    """
    # Who is missing matters more than who is back, and who went last more than who went first.
    members = sorted(incident.members.values(), key=lambda gone: (gone.returned_ms is not None, -gone.row.deadline_ms))
    return ToldIncident(
        incident_id=incident.id,
        group_id=incident.group_id,
        step=step,
        closed_by=closed_by,
        sequence=incident.sequence,
        opened_ms=incident.opened_ms,
        expired=incident.expired,
        expired_new=incident.expired - expired_before,
        returned=incident.returns,
        missing=incident.missing,
        reasons=dict(incident.reasons),
        members=tuple(map(_member, members[:MEMBERS_NAMED_MAX])),
        members_left_out=max(0, len(members) - MEMBERS_NAMED_MAX) + incident.untracked,
    )


def _member(gone: Gone) -> ToldMember:
    row = gone.row
    return ToldMember(
        member_id=row.member_id,
        group_instance_id=row.group_instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        reason=row.reason,
        last_seen_ms=row.last_seen_ms,
        session_timeout_ms=row.session_timeout_ms,
        deadline_ms=row.deadline_ms,
        lateness_ms=row.lateness_ms,
        generation_id=row.generation_id,
        times=gone.times,
        returned_ms=gone.returned_ms,
    )
