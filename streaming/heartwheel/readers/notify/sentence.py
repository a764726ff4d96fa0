"""One line about an incident, for people."""

from __future__ import annotations

from typing import Final

from heartwheel.base.phrases import count, setting
from heartwheel.base.plain import plain
from heartwheel.readers.notify.incident import ClosedBy, IncidentStep
from heartwheel.readers.notify.payload import IncidentPayload, MemberPayload
from heartwheel.wire.events import JOB, JOB_RUN
from heartwheel.wire.verdicts import ExpiryReason

_NAMES_MAX: Final = 5
_NAME_LENGTH_MAX: Final = 80
_WORDS_LENGTH_MAX: Final = 240


def sentence(incident: IncidentPayload) -> str:
    """Return one line about an incident."""
    if incident.step is IncidentStep.CLOSED:
        return f"{_group(incident)}: {_end(incident)}"
    parts = [f"{_expired(incident)}{_back(incident)}{_names(incident)}"] if incident.expired else []
    # One trouble may be over while another lasts, or while members are missing.
    parts += [safe(each.words, length_max=_WORDS_LENGTH_MAX) for each in incident.troubles]
    return f"{_group(incident)}: {'; '.join(parts) or 'in order again'}{_cause(incident)}{_advice(incident)}"


def _advice(incident: IncidentPayload) -> str:
    """Return what to change, in the first message about members that a broker's log shows, and with a later cause."""
    is_first = incident.step is IncidentStep.OPENED
    is_later = not (is_first or incident.expired_new or incident.returned)
    wanted = (member for member in incident.members if is_first or (is_later and member.cause))
    found = next((member.advice for member in wanted if member.advice), "")
    return f". {safe(found, length_max=_WORDS_LENGTH_MAX)}" if found else ""


def _cause(incident: IncidentPayload) -> str:
    """Return what happened to the pod or machine of the newest member of which that is known."""
    found = next((member.cause for member in incident.members if member.cause), "")
    return f". {safe(found, length_max=_WORDS_LENGTH_MAX).rstrip('.')}" if found else ""


def safe(text: str, *, length_max: int = _NAME_LENGTH_MAX) -> str:
    """Return an id, or words with one in them, made harmless for a chat: no markup, nothing invisible, not too long.

    Slack reads `<!channel>` in a text as a command; its manual says to write `&`, `<` and `>` as entities.
    """
    text = plain(text)
    if len(text) > length_max:
        text = text[: length_max - 1] + "…"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _group(incident: IncidentPayload) -> str:
    return "further groups" if incident.group_id is None else safe(incident.group_id)


def _expired(incident: IncidentPayload) -> str:
    has_failed = set(incident.reasons) == {ExpiryReason.WORKER_FAILED.value}
    who, verb = ("worker", "failed") if has_failed else ("member", "expired")
    reasons = ", ".join(
        f"{number} {reason.replace('_', ' ')}" if len(incident.reasons) > 1 else reason.replace("_", " ")
        for reason, number in incident.reasons.items()
    )
    if incident.step is IncidentStep.UPDATED:
        return f"{_more(incident, who, verb)} ({reasons})"
    return _in_all(incident, who, verb) + ("" if has_failed else f" ({reasons})")


def _in_all(incident: IncidentPayload, who: str = "member", verb: str = "expired") -> str:
    """Return how many members were expired, and how often if that is more."""
    members, times = incident.expired_members, incident.expired
    if incident.group_id is None:
        return count(times, "expiration")  # the members are not recorded
    often = "" if members == times else f" {times} times" if members == 1 else f", {times} times in all"
    return f"{count(members, who)} {verb}{often}"


def _more(incident: IncidentPayload, who: str, verb: str) -> str:
    """Return how many were expired since the last message, and in all."""
    new, members, times = incident.expired_new, incident.expired_members, incident.expired
    if members == times:
        more, of = f"{new} more {verb}, ", ""
    else:
        more, of = f"{verb} {count(new, 'more time')}, ", f", of {count(members, who)}"
    return f"{more if new else ''}{times} in all{of}"


def _back(incident: IncidentPayload) -> str:
    return f", {incident.returned} came back, {incident.missing} missing" if incident.returned else ""


def _end(incident: IncidentPayload) -> str:
    if incident.closed_by is ClosedBy.CALM:
        return "in order again"
    if incident.closed_by is ClosedBy.RETURNED:
        if incident.sequence == 1:
            return f"{_in_all(incident)} and came back"
        return f"all are back, after {count(incident.expired, 'expiration')}"
    if not incident.expired:
        return f"closed, as nothing more happened; {safe(incident.troubles[0].words, length_max=_WORDS_LENGTH_MAX)}"
    back = "" if incident.group_id is None else f"; {incident.missing} did not come back"
    return f"closed, as nothing more happened{back}, after {count(incident.expired, 'expiration')}"


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
    within = setting(member.session_timeout_ms or 0)
    return f" (no success within {within})" if member.client_id == JOB else f" (a run was silent for {within})"
