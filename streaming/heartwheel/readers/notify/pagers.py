"""Incidents as events of PagerDuty and alerts of Opsgenie, which open, update and close by themselves.

One request is about one incident. PagerDuty takes events (Events API v2) at one address, with the routing key in the
body. Opsgenie takes an alert at one address and its end at another one, with the API key in a header.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.readers.notify.incident import IncidentStep
from heartwheel.readers.notify.message import Message

_SUMMARY_CHARS_MAX: Final = 1_024
_ALERT_CHARS_MAX: Final = 130
_DESCRIPTION_CHARS_MAX: Final = 15_000
_SOURCE: Final = "heartwheel"
_OTHERS: Final = "further groups"

_encode = msgspec.json.Encoder().encode


class PagerRequest(NamedTuple):
    """A request about one incident: where it goes, its headers and its body."""

    url: str
    headers: dict[str, str]
    body: bytes


def pagerduty(url: str, key: str, message: Message) -> PagerRequest:
    """Return an event of PagerDuty: a trigger, or a resolve once the incident is closed.

    Args:
        url: of the Events API v2.
        key: the routing key of an integration.
        message: about one incident.
    """
    text, incident = _parts(message)
    body: dict[str, Any] = {
        "routing_key": key,
        "event_action": "resolve" if incident["step"] == IncidentStep.CLOSED else "trigger",
        "dedup_key": incident["incident_id"],
        "payload": {
            "summary": text[:_SUMMARY_CHARS_MAX],
            "source": incident["group_id"] or _OTHERS,
            "severity": "error",
            "component": _SOURCE,
            "custom_details": incident,
        },
    }
    return PagerRequest(url, {}, _encode(body))


def opsgenie(url: str, key: str, message: Message) -> PagerRequest:
    """Return an alert of Opsgenie, a note about it if no more members were expired, or the request that closes it.

    Args:
        url: of the Alert API, `.../v2/alerts`.
        key: an API key.
        message: about one incident.
    """
    text, incident = _parts(message)
    headers = {"authorization": f"GenieKey {key}"}
    alias = incident["incident_id"]
    if incident["step"] == IncidentStep.CLOSED:
        note = {"source": _SOURCE, "note": text[:_DESCRIPTION_CHARS_MAX]}
        return PagerRequest(f"{url.rstrip('/')}/{alias}/close?identifierType=alias", headers, _encode(note))
    if incident["step"] == IncidentStep.UPDATED and not (incident["expired_new"] or incident["troubles"]):
        # An alert that is made again under its alias is counted, and its description stays as it is.
        note = {"source": _SOURCE, "note": text[:_DESCRIPTION_CHARS_MAX]}
        return PagerRequest(f"{url.rstrip('/')}/{alias}/notes?identifierType=alias", headers, _encode(note))
    alert = {
        "message": text[:_ALERT_CHARS_MAX],
        "alias": alias,
        "description": text[:_DESCRIPTION_CHARS_MAX],
        "entity": incident["group_id"] or _OTHERS,
        "source": _SOURCE,
        "details": {name: str(incident[name]) for name in ("expired", "returned", "missing", "opened_ms")},
    }
    return PagerRequest(url, headers, _encode(alert))


PAGERS: Final[Mapping[str, Callable[[str, str, Message], PagerRequest]]] = {
    "pagerduty": pagerduty,
    "opsgenie": opsgenie,
}
"""What makes the request of each service, by the name that `notify.kind` has for it."""


def _parts(message: Message) -> tuple[str, dict[str, Any]]:
    body = msgspec.json.decode(message.body)
    return body["text"], body["incidents"][0]
