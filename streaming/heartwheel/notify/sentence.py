"""One line about an incident, for people."""

from __future__ import annotations

from typing import Final

from heartwheel.live.phrases import setting
from heartwheel.notify.incident import ClosedBy, Step
from heartwheel.notify.payload import IncidentPayload, MemberPayload
from heartwheel.plain import plain
from heartwheel.wire.events import JOB, JOB_RUN
from heartwheel.wire.verdicts import ExpiryReason

_NAMES_MAX: Final = 5
_NAME_LENGTH_MAX: Final = 80
_WORDS_LENGTH_MAX: Final = 240


def sentence(incident: IncidentPayload) -> str:
    """Return one line about what happened to a group."""
    if incident.step is Step.CLOSED:
        return f"{_group(incident)}: {_end(incident)}"
    parts = [f"{_expired(incident)}{_back(incident)}{_names(incident)}"] if incident.expired else []
    # One trouble may be over while another lasts, or while members are missing.
    parts += [safe(each.words, length_max=_WORDS_LENGTH_MAX) for each in incident.troubles]
    return f"{_group(incident)}: {'; '.join(parts) or 'in order again'}"


def safe(text: str, *, length_max: int = _NAME_LENGTH_MAX) -> str:
    """Return an id, or words with one in them, made harmless for a chat: no markup, nothing invisible, not too long.

    Slack reads `<!channel>` in a text as a command; `&`, `<` and `>` are to be written as entities, by its manual.
    """
    text = plain(text)
    if len(text) > length_max:
        text = text[: length_max - 1] + "…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _group(incident: IncidentPayload) -> str:
    return "further groups" if incident.group_id is None else safe(incident.group_id)


def _expired(incident: IncidentPayload) -> str:
    if set(incident.reasons) == {ExpiryReason.WORKER_FAILED.value}:
        return _failed(incident)
    reasons = ", ".join(
        f"{count} {reason.replace('_', ' ')}" if len(incident.reasons) > 1 else reason.replace("_", " ")
        for reason, count in incident.reasons.items()
    )
    if incident.step is Step.UPDATED:
        more = f"{incident.expired_new} more expired, " if incident.expired_new else ""
        return f"{more}{incident.expired} in all ({reasons})"
    return f"{_members(incident.expired)} expired ({reasons})"


def _failed(incident: IncidentPayload) -> str:
    if incident.step is not Step.UPDATED:
        return "1 worker failed" if incident.expired == 1 else f"{incident.expired} workers failed"
    more = f"{incident.expired_new} more failed, " if incident.expired_new else ""
    return f"{more}{incident.expired} in all (worker failed)"


def _back(incident: IncidentPayload) -> str:
    return f", {incident.returned} came back, {incident.missing} missing" if incident.returned else ""


def _end(incident: IncidentPayload) -> str:
    if incident.closed_by is ClosedBy.CALM:
        return "in order again"
    if incident.closed_by is ClosedBy.RETURNED:
        if incident.sequence == 1:
            return f"{_expired_once(incident)} and came back"
        return f"all are back, after {_times(incident.expired)}"
    if not incident.expired:
        return f"closed, as nothing more happened; {safe(incident.troubles[0].words, length_max=_WORDS_LENGTH_MAX)}"
    return f"closed, as nothing more happened; {incident.missing} did not come back, after {_times(incident.expired)}"


def _expired_once(incident: IncidentPayload) -> str:
    return f"{_members(len(incident.members) + incident.members_left_out)} expired"


def _names(incident: IncidentPayload) -> str:
    missing = [member for member in incident.members if member.returned_ms is None]
    if not missing:
        return ""
    names = ", ".join(_name(member) for member in missing[:_NAMES_MAX])
    more = incident.missing - min(len(missing), _NAMES_MAX)
    return f": {names}" + (f" and {more} more" if more > 0 else "")


def _name(member: MemberPayload) -> str:
    host = f" at {safe(member.client_host)}" if member.client_host else ""
    return safe(member.member_id) + host + _how(member)


def _how(member: MemberPayload) -> str:
    if member.failure:
        return f" ({safe(member.failure)})"
    if member.reason != ExpiryReason.SESSION_TIMEOUT or member.client_id not in {JOB, JOB_RUN}:
        return ""
    within = setting(member.session_timeout_ms)
    return f" (no success within {within})" if member.client_id == JOB else f" (a run was silent for {within})"


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


def _times(count: int) -> str:
    return "1 expiration" if count == 1 else f"{count} expirations"
