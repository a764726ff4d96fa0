"""The messages that are posted, as JSON."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from importlib import metadata
from typing import Final

import msgspec

from heartwheel.readers.notify.payload import IncidentPayload
from heartwheel.readers.notify.sentence import sentence

INCIDENTS_MAX: Final = 50
"""Most incidents in one message."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a message.

    Slack and similar services show only `text`; the rest is for programs. No field may be called `type`: Mattermost
    takes that for the type of a post, and refuses ours.
    """

    event: str
    text: str
    id: str
    at_ms: int
    waited_ms: int
    version: str
    incidents: tuple[IncidentPayload, ...]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message to deliver, even after the end of this process.

    Args:
        id: the same for every attempt.
        body: its bytes as text; never made again.
        incidents: the ids of the incidents in it.
        title: its subject, for the log.
    """

    id: str
    body: str
    incidents: tuple[str, ...]
    title: str
    made_ms: int


def message_of(incidents: Sequence[IncidentPayload], *, now_ms: int, waited_ms: int) -> Message:
    """Return a message about some incidents.

    Args:
        incidents: at least one, at most `INCIDENTS_MAX`.
        waited_ms: how long the first of them had to wait for the rate limit or the receiver, ms.
    """
    names = [(incident.incident_id, incident.sequence) for incident in incidents]
    message_id = "msg_" + hashlib.blake2b(msgspec.json.encode(names), digest_size=16).hexdigest()
    lines = [sentence(incident) for incident in incidents]
    body = Body(
        event="incidents",
        text="\n".join(lines),
        id=message_id,
        at_ms=now_ms,
        waited_ms=waited_ms,
        version=release(),
        incidents=tuple(incidents),
    )
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return Message(
        id=message_id,
        body=msgspec.json.encode(body).decode(),
        incidents=tuple(incident.incident_id for incident in incidents),
        title=lines[0] + more,
        made_ms=now_ms,
    )


@functools.cache
def release() -> str:
    """Return the running release of heartwheel."""
    return metadata.version("heartwheel")
