"""Parse what a request asks for: records for the topic, checked as the engine will check them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from heartwheel.base.phrases import setting
from heartwheel.readers.http_server.problems import RequestError
from heartwheel.settings import parse_duration_ms
from heartwheel.wire.event_codec import decode_event, encode_event
from heartwheel.wire.events import JOB, JOB_RUN, Event, EventType, RejectedError
from heartwheel.wire.relayed import may_be_relayed, read_feed

_FAULTS_MAX: Final = 10
_VALUE_BYTES_MAX: Final = 64 << 10
_KINDS: Final[Mapping[str, tuple[EventType, frozenset[str]]]] = {
    "beat": (EventType.HEARTBEAT, frozenset({"incarnation", "session"})),
    "leave": (EventType.LEAVE, frozenset({"failure", "incarnation", "reason", "session"})),
    "start": (EventType.HEARTBEAT, frozenset({"incarnation", "limit"})),
    "success": (EventType.HEARTBEAT, frozenset({"every", "grace", "incarnation"})),
    "ping": (EventType.HEARTBEAT, frozenset({"every", "grace", "incarnation"})),
    "fail": (EventType.LEAVE, frozenset({"failure", "incarnation"})),
}
_CLIENTS: Final[Mapping[str, str]] = {"start": JOB_RUN, "success": JOB, "ping": JOB, "fail": JOB}
_AN_HOUR: Final = "1h"
_DURATIONS: Final = {"session": "30s", "limit": "3h", "every": "24h", "grace": "1h"}
"""An example of each parameter that is a duration."""

_OF_WORKERS: Final = frozenset({EventType.HEARTBEAT, EventType.JOIN, EventType.SYNC, EventType.COMMIT, EventType.LEAVE})


class BeatRecord(NamedTuple):
    """One record of the heartbeat topic: its group, which is its key, and its value."""

    group_id: str
    value: bytes


class SessionLimits(NamedTuple):
    """The shortest and the longest session timeout that the engine accepts, milliseconds."""

    least_ms: int
    most_ms: int


def record_of_path(path: bytes, query: bytes, sessions: SessionLimits, *, host: str) -> BeatRecord:
    """Return the record that an address such as `/beat/GROUP/MEMBER?session=30s` asks for; docs/feed.md lists all.

    Args:
        path: percent-encoded.
        query: percent-encoded.

    Raises:
        RequestError: 404 or 400, with what is wrong.
    """
    parts = path.split(b"/")
    name = parts[1].decode("latin-1") if len(parts) == 4 else ""
    if name not in _KINDS:
        hint = "beat at /beat/GROUP/MEMBER; instead of beat: leave, and of jobs start, success, fail or ping"
        raise RequestError(404, "there is nothing here", hint)
    type_, known = _KINDS[name]
    try:
        group, member = (unquote_to_bytes(part).decode("utf-8") for part in parts[2:])
        given = dict(parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")) if query else {}
    except UnicodeDecodeError:
        raise RequestError(400, "the address is not UTF-8", "percent-encode the UTF-8 bytes of the ids") from None
    if unknown := given.keys() - known:
        hint = f"{name} knows {', '.join(sorted(known))}"
        raise RequestError(400, f"parameter {min(unknown)[:100]!r} is not known", hint)
    failure = given.get("failure", "" if name == "fail" else None)
    # A member that fails before its first heartbeat arrives with its failure: `heartwheel.engine.rules.presence`.
    arrives = type_ is EventType.HEARTBEAT or failure is not None
    event = Event(
        type=type_,
        group_id=group,
        member_id=member,
        session_timeout_ms=_session_of(name, given),
        reason=given.get("reason"),
        failure=failure,
        client_id=_CLIENTS.get(name, "gateway") if arrives else None,
        client_host=f"/{host}" if arrives else None,
        incarnation=_incarnation(given["incarnation"]) if "incarnation" in given else None,
    )
    return _checked(encode_event(event), sessions)


def records_of_body(body: bytes, sessions: SessionLimits, *, lines: bool, records_max: int) -> list[BeatRecord]:
    """Parse a body: one JSON object as on the topic, or one per line.

    Args:
        lines: whether it is known to be one object per line; otherwise that is tried if the body is not one object.

    Raises:
        RequestError: 400 with the first lines that are wrong, or 413.
    """
    if not lines:
        try:
            return [_checked(body, sessions)]
        except RequestError:
            if b"\n" not in body.strip():
                raise
    found, faults = list[BeatRecord](), list[str]()
    if body.count(b"\n") > records_max:
        raise RequestError(413, f"more than {records_max} lines", "send less at once")
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line or line.isspace():
            continue
        try:
            found.append(_checked(line, sessions))
        except RequestError as error:
            faults.append(f"line {number}: {error.error}")
    if faults:
        more = f"; and {len(faults) - _FAULTS_MAX} more" if len(faults) > _FAULTS_MAX else ""
        raise RequestError(400, "; ".join(faults[:_FAULTS_MAX]) + more, "nothing was sent; docs/feed.md has examples")
    if not found:
        raise RequestError(400, "the body is empty", "send JSON, or beat at /beat/GROUP/MEMBER")
    return found


def _checked(value: bytes, sessions: SessionLimits) -> BeatRecord:
    try:
        event = decode_event(value, size_max=_VALUE_BYTES_MAX)
    except RejectedError as error:
        raise RequestError(400, str(error), "docs/feed.md says what a record holds") from None
    if event.type not in _OF_WORKERS:
        raise RequestError(400, f"workers may not send type {event.type}", "send heartbeats and leaves")
    if may_be_relayed(value) and read_feed(value):
        raise RequestError(400, "workers may not name a feed", "leave out feed and at_ms")
    session_ms = event.session_timeout_ms
    if session_ms is not None and not sessions.least_ms <= session_ms <= sessions.most_ms:
        least, most = setting(sessions.least_ms), setting(sessions.most_ms)
        words = f"a session timeout of {setting(session_ms)} is not within {least} to {most}"
        if session_ms < sessions.least_ms:
            raise RequestError(400, words, "the job would reject it: see coordinator.group_min_session_timeout")
        raise RequestError(400, words, "the job would reject it: see coordinator.presence_max_session_timeout")
    return BeatRecord(event.group_id, value)


def _session_of(name: str, given: Mapping[str, str]) -> int | None:
    """Return how long a member may be silent, ms; for a job, until its run is over or until its next success."""
    if name == "start":
        return _duration_ms("limit", given.get("limit", _AN_HOUR))
    if _CLIENTS.get(name) == JOB and name != "fail":
        if "every" not in given:
            raise RequestError(400, f"{name} does not say how often it comes", "write ?every=24h&grace=1h")
        every_ms, grace_ms = _duration_ms("every", given["every"]), _duration_ms("grace", given.get("grace", _AN_HOUR))
        return every_ms + grace_ms
    return _duration_ms("session", given["session"]) if "session" in given else None


def _incarnation(text: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text):
        raise RequestError(400, "incarnation is no whole number", "write incarnation=$(date +%s) at the worker's start")
    return int(text)


def _duration_ms(name: str, text: str) -> int:
    try:
        duration_ms = parse_duration_ms(text)
    except ValueError:
        raise RequestError(400, f"{name} is no duration", f"write {name}={_DURATIONS[name]}") from None
    if not 0 < duration_ms < 2**31:
        words = f"{name}={text} must be longer than 0 and shorter than 24 days"
        raise RequestError(400, words, f"write for example {name}={_DURATIONS[name]}")
    return duration_ms
