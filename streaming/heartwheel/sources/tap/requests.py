"""Requests of a request log as events of the heartbeat topic.

A request that the coordinator refused has no effect, so it is not relayed. One that it parked and then refused has had
its effect, and is relayed (`heartwheel.engine.replay.recorded`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from heartwheel.engine.replay.recorded import Recorded, RecordedAnswer
from heartwheel.sources.tap.request_log import Answered
from heartwheel.wire.events import ACCEPTED, UNCHECKED_GENERATION, Event, EventType, Leaving, Protocol
from heartwheel.wire.group_heartbeats import TASK_KINDS, GroupHeartbeat, HeartbeatType

NO_ERROR: Final = "NONE"

ERRORS: Final[Mapping[int, str]] = {
    0: NO_ERROR,
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    22: "ILLEGAL_GENERATION",
    23: "INCONSISTENT_GROUP_PROTOCOL",
    25: "UNKNOWN_MEMBER_ID",
    26: "INVALID_SESSION_TIMEOUT",
    27: "REBALANCE_IN_PROGRESS",
    42: "INVALID_REQUEST",
    69: "GROUP_ID_NOT_FOUND",
    79: "MEMBER_ID_REQUIRED",
    81: "GROUP_MAX_SIZE_REACHED",
    82: "FENCED_INSTANCE_ID",
    110: "FENCED_MEMBER_EPOCH",
    111: "UNRELEASED_INSTANCE_ID",
}
"""Errors by Kafka's codes: those that a rule distinguishes, and those of heartbeats with epochs."""

REBALANCE_IN_PROGRESS: Final = ERRORS[27]
MEMBER_ID_REQUIRED: Final = ERRORS[79]

LOAD_IN_PROGRESS: Final = ERRORS[14]

_ELSEWHERE: Final = frozenset({LOAD_IN_PROGRESS, ERRORS[15], ERRORS[16]})
"""Answers of a broker that does not coordinate the group now; its load drops what was parked there."""

_HEARTBEATS: Final = {68: HeartbeatType.CONSUMER, 76: HeartbeatType.SHARE, 88: HeartbeatType.STREAMS}

_COMMIT: Final = 8


def error_of(answered: Answered) -> str:
    """Return Kafka's name of the answer's error."""
    code = code_of(answered)
    return ERRORS.get(code, f"ERROR_{code}")


def code_of(answered: Answered) -> int:
    """Return Kafka's code of the answer's error; for a commit, the first one of its partitions."""
    if answered.api == _COMMIT:
        return next((each for each in _codes_of_commit(answered.answer) if each), 0)
    return int(answered.answer.get("errorCode") or 0)


def _codes_of_commit(answer: Mapping[str, Any]) -> list[int]:
    topics = answer.get("topics") or answer.get("responses") or []
    return [part.get("errorCode", 0) for topic in topics for part in topic.get("partitions", ())]


def group_of(answered: Answered) -> str:
    """Return the group id of a request."""
    return str(answered.request.get("groupId") or "")


def ids_of(answered: Answered) -> list[str | None]:
    """Return the ids in a request, as its client wrote them."""
    request = answered.request
    return [_text(request.get(name)) for name in ("groupId", "memberId", "groupInstanceId", "instanceId")]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def is_elsewhere(answered: Answered) -> bool:
    """Return whether the broker did not coordinate the group, or had not loaded it yet."""
    return error_of(answered) in _ELSEWHERE


def event_of(answered: Answered) -> Event | GroupHeartbeat | None:
    """Return a request as an event if it had any effect on its group; otherwise `None`."""
    if not group_of(answered) or is_elsewhere(answered):
        return None
    if answered.api in _HEARTBEATS:
        return _group_heartbeat(answered) if error_of(answered) == NO_ERROR else None
    event = _SHAPES[answered.api](answered)
    if event is None:
        return None
    evidence = RecordedAnswer(
        answered.arrived_ms,
        answer_ms=answered.logged_ms,
        error=error_of(answered),
        response_generation_id=answered.answer.get("generationId"),
        leader=answered.answer.get("leader"),
    )
    return None if Recorded(event, evidence).had_no_effect else event


def with_begin_unseen(event: Event) -> Event:
    """Return a join that arrived before its source knew everything, changed so that it fixes no start of a join phase.

    When the first join phase of a new group began decides when it ends. A join that was parked before cannot show that,
    so its sender is named as a member that has joined again.
    """
    first = event.type is EventType.JOIN and not event.member_id
    if first and event.error_code == ACCEPTED and event.generation_id == 1:
        return msgspec.structs.replace(event, member_id=event.assigned_member_id or "")
    return event


def _common(answered: Answered, kind: EventType) -> dict[str, Any]:
    request = answered.request
    return {
        "type": kind,
        "group_id": request["groupId"],
        "member_id": request.get("memberId") or "",
        "group_instance_id": request.get("groupInstanceId"),
        "api_version": answered.version,
        "error_code": code_of(answered),
    }


def _join(answered: Answered) -> Event:
    request, answer = answered.request, answered.answer
    session_ms = request.get("sessionTimeoutMs") or None
    is_accepted = code_of(answered) == ACCEPTED
    return Event(
        **_common(answered, EventType.JOIN),
        # The log does not show until when it was parked; its answer shows the generation of the phase that it joined.
        generation_id=answer.get("generationId", UNCHECKED_GENERATION) if is_accepted else UNCHECKED_GENERATION,
        leader=answer.get("leader") or None if is_accepted else None,
        client_id=answered.client_id,
        client_host=answered.client_host,
        session_timeout_ms=session_ms,
        # JoinGroup v0 has none: the session timeout is used, as in `JoinGroupRequest`.
        rebalance_timeout_ms=_positive(request.get("rebalanceTimeoutMs")) or session_ms,
        assigned_member_id=answer.get("memberId") or f"untold-{answered.id}",
        protocol_type=request.get("protocolType"),
        protocols=tuple(
            Protocol(each["name"], hashlib.sha1(each.get("metadata", "").encode(), usedforsecurity=False).hexdigest())
            for each in request.get("protocols", ())
        ),
        reason=request.get("reason"),
    )


def _positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


def _sync(answered: Answered) -> Event | None:
    request = answered.request
    if not request.get("memberId"):
        return None
    return Event(
        **_common(answered, EventType.SYNC),
        generation_id=request.get("generationId", -1),
        protocol_type=request.get("protocolType"),
        protocol_name=request.get("protocolName"),
    )


def _heartbeat(answered: Answered) -> Event | None:
    if not answered.request.get("memberId"):
        return None
    return Event(**_common(answered, EventType.HEARTBEAT), generation_id=answered.request.get("generationId", -1))


def _commit(answered: Answered) -> Event | None:
    request = answered.request
    if not request.get("memberId"):
        return None
    generation = request.get("generationIdOrMemberEpoch", request.get("generationId", -1))
    return Event(**_common(answered, EventType.COMMIT), generation_id=generation)


def _leave(answered: Answered) -> Event | None:
    request = answered.request
    if "members" not in request:
        return Event(**_common(answered, EventType.LEAVE)) if request.get("memberId") else None
    refused = {
        (each.get("memberId") or "", each.get("groupInstanceId"))
        for each in answered.answer.get("members", ())
        if each.get("errorCode")
    }
    leaving = tuple(
        Leaving(each.get("memberId") or "", each.get("groupInstanceId"), each.get("reason"))
        for each in request["members"]
        if (each.get("memberId") or "", each.get("groupInstanceId")) not in refused
    )
    return Event(**_common(answered, EventType.LEAVE), leaving=leaving) if leaving else None


_SHAPES: Final[Mapping[int, Callable[[Answered], Event | None]]] = {
    _COMMIT: _commit,
    11: _join,
    12: _heartbeat,
    13: _leave,
    14: _sync,
}


def _group_heartbeat(answered: Answered) -> GroupHeartbeat | None:
    request, answer = answered.request, answered.answer
    if not (request.get("memberId") or answer.get("memberId")):
        return None
    is_streams = _HEARTBEATS[answered.api] is HeartbeatType.STREAMS
    return GroupHeartbeat(
        type=_HEARTBEATS[answered.api],
        group_id=request["groupId"],
        member_epoch=request.get("memberEpoch", 0),
        member_id=request.get("memberId") or "",
        group_instance_id=request.get("instanceId"),
        rebalance_timeout_ms=request.get("rebalanceTimeoutMs"),
        owned=_tasks(request) if is_streams else _partitions(request.get("topicPartitions")),
        subscribed_topics=_names(request.get("subscribedTopicNames")),
        subscribed_regex=request.get("subscribedTopicRegex"),
        **(_streams_metadata(request) if is_streams else {}),
        client_id=answered.client_id,
        client_host=answered.client_host,
        api_version=answered.version,
        answer_member_id=answer.get("memberId"),
        answer_member_epoch=answer.get("memberEpoch"),
        assignment=_tasks(answer)
        if is_streams
        else _partitions((answer.get("assignment") or {}).get("topicPartitions")),
    )


def _names(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _streams_metadata(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a streams member says of itself; another topology, rack, process or tags bump the epoch."""
    tags = request.get("clientTags")
    return {
        "rack_id": request.get("rackId"),
        "process_id": request.get("processId"),
        "client_tags": None if tags is None else {tag["key"]: tag["value"] for tag in tags},
        "topology_epoch": (request.get("topology") or {}).get("epoch"),
    }


def _tasks(fields: Mapping[str, Any]) -> dict[str, tuple[int, ...]] | None:
    """Return a streams member's tasks by kind and subtopology; a task that becomes a standby task is revoked first."""
    if all(fields.get(kind) is None for kind in TASK_KINDS):
        return None
    return {
        f"{kind}/{task['subtopologyId']}": tuple(task["partitions"])
        for kind in TASK_KINDS
        for task in fields.get(kind) or ()
    }


def _partitions(topics: list[dict[str, Any]] | None) -> dict[str, tuple[int, ...]] | None:
    if topics is None:
        return None
    return {str(topic["topicId"]): tuple(topic["partitions"]) for topic in topics}
