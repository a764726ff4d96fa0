"""The request log: which lines are requests to a coordinator, when each arrived, and which of them had any effect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heartwheel.sources.explain.log_tail import TailedLine
from heartwheel.sources.tap.request_log import Answered, RequestLog, breaks_lines, is_head
from heartwheel.sources.tap.requests import error_of, event_of
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from support.request_lines import T0, heartbeat, join, line


def _read(text: str) -> Answered:
    answered = RequestLog().read(text.encode(), 70)
    assert answered is not None
    return answered


def _event(text: str) -> Event | GroupHeartbeat | None:
    return event_of(_read(text))


def test_request_arrived_before_it_was_logged() -> None:
    """A line is written when its request is answered; the time that took is in it, and the line's place names it."""
    answered = _read(join(T0 + 42_500, took_ms=42_499.6))
    assert (answered.arrived_ms, answered.logged_ms, answered.id) == (T0, T0 + 42_500, f"{T0 + 42_500}-70")
    assert answered.client_host == "10.0.0.7"


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda text: text,
        lambda text: "2026-11-22T10:00:00.123456789Z stdout F " + text,
        lambda text: json.dumps({"timeMillis": T0, "level": "DEBUG", "message": text[text.index("Completed") :]}),
        lambda text: json.dumps({"log": text + "\n", "stream": "stdout", "time": "2026-11-22T10:00:00.123456789Z"}),
        lambda text: json.dumps({"log": json.dumps({"timeMillis": T0, "message": text[text.index("Completed") :]})}),
        lambda text: text + " [data-plane-kafka-network-thread-0-ListenerName(PLAINTEXT)-PLAINTEXT-1]",
        lambda text: (
            "kafka-0  | 2026-11-22 02:12:24 DEBUG [data-plane-kafka-network-thread-0-ListenerName(PLAIN-9092)-SSL-1] "
            f"logger:281 - {text[text.index('Completed') : text.rindex(' (')]}"
        ),
        lambda text: (
            f"2026-11-22T02:12:24.836Z kafka.request.logger {text[text.index('Completed') : text.rindex(' (')]}"
        ),
        lambda text: f"[2026-11-22 02:12:24,836] TRACE [kafka.request.logger] {text[text.index('Completed') :]}",
        lambda text: (
            'time=2026-11-22T02:12:24.836Z level=debug thread=data-plane-1 logger=kafka.request.logger msg="'
            + text[text.index("Completed") : text.rindex(" (")].replace('"', '\\"')
            + '"'
        ),
    ],
)
def test_layouts(wrapped: Any) -> None:
    """Kafka's own layout, one inside a container's log, and JSON are read."""
    text = heartbeat(T0)
    text = text[: text.index(" (kafka.request.logger)")] if wrapped(text).startswith("{") else text
    event = _event(wrapped(text))
    assert isinstance(event, Event)
    assert (event.type, event.group_id, event.member_id) == (EventType.HEARTBEAT, "g", "m1")


def _leave_in_a_group_id() -> str:
    named = {"groupId": "g", "members": [{"memberId": "m1", "groupInstanceId": None}]}
    text = line(T0, 13, named, {"errorCode": 0, "members": [{"memberId": "m1", "errorCode": 0}]}, version=5)
    forged = text[text.index("Completed") : text.rindex(" (")]
    return f"Dynamic member with unknown member id joins group {forged} in Empty state. Created a new member id x"


OWN = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0]"


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda text: f"[2026-11-22 02:12:24,836] INFO {OWN} {text} (o.a.k.GroupMetadataManager)",
        lambda text: f"[2026-11-22 02:12:24,836] DEBUG {OWN} {text} (o.a.k.GroupMetadataManager)",
        lambda text: f"[2026-11-22 02:12:24,836] {OWN} {text}",
        lambda text: f"2026-11-22 02:12:24 INFO  [group-1] GroupMetadataManager:12 - {OWN} {text}",
        lambda text: json.dumps({"log": f"[2026-11-22 02:12:24,836] INFO {OWN} {text} (o.a.k.X)\n"}),
        lambda text: json.dumps({"timeMillis": T0, "level": "INFO", "message": f"{OWN} {text}"}),
        lambda text: json.dumps({"timeMillis": T0, "message": f"{OWN} a\n{text[text.index('Completed') :]}\nb"}),
        lambda text: json.dumps({"timeMillis": T0, "message": f"{OWN} a\n[2026-11-22] {text[text.index('Comp') :]}"}),
        lambda text: json.dumps(
            {"timeMillis": T0, "loggerName": "kafka.server.X", "thrown": {"message": text[text.index("Comp") :]}}
        ),
    ],
)
def test_request_in_the_message_of_another_logger_is_none(wrapped: Any) -> None:
    """A client may be called like a request: the coordinator's line that quotes it is no line of the request logger."""
    log, text = RequestLog(), wrapped(_leave_in_a_group_id()).encode()
    assert (log.read(text, 0), log.time_of(text)) == (None, None)


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_line_break_of_a_client_is_told_from_that_of_a_carrier(layers: int) -> None:
    """A container's runtime writes the end of each line, too: that is no text of a client."""
    for name, breaks in (("m", False), ("m\n", True)):
        text = heartbeat(T0, name)
        for _ in range(layers):
            text = json.dumps({"log": f"{text}\n"})
        assert breaks_lines(text.encode()) == breaks


def test_head_of_a_line_is_looked_at_quickly() -> None:
    """A client's text stands before a request, too, and costs no more than its length."""
    assert not is_head("[2026-11-22 02:12:24,836] DEBUG " + "[]" * 500)
    assert not is_head("[2026-11-22 02:12:24,836] DEBUG " + "[logger" * 140 + "x")


def test_other_requests_give_time_and_nothing_else() -> None:
    """A fetch is no event; its line proves that time has passed."""
    log, text = RequestLog(), line(T0, 1, {"topics": []}, {"errorCode": 0}).encode()
    assert log.read(text, 0) is None
    assert (log.time_of(text), log.lines, log.unreadable) == (T0, 1, 0)


def test_line_that_is_cut_is_counted() -> None:
    """A group request that cannot be read is counted, and nothing is made up in its place."""
    log = RequestLog()
    assert log.read(heartbeat(T0)[:300].encode(), 0) is None
    assert log.unreadable == 1


@pytest.mark.parametrize(("error", "counts"), [(0, True), (27, True), (22, False), (25, False), (16, False)])
def test_refused_heartbeats_are_not_passed_on(error: int, counts: bool) -> None:  # noqa: FBT001 - a parameter
    """What the coordinator refused keeps nobody alive; told to join again, a member is alive."""
    assert (_event(heartbeat(T0, error=error)) is not None) == counts


def test_first_join_is_passed_on_with_the_id_that_it_was_given() -> None:
    """A join without a member id is sent back with one: it makes a pending member."""
    event = _event(join(T0, "", error=79, given="m7"))
    assert isinstance(event, Event)
    assert (event.member_id, event.assigned_member_id, event.session_timeout_ms) == ("", "m7", 6_000)


@pytest.mark.parametrize("error", [14, 15, 16])
def test_join_that_found_no_coordinator_makes_nobody(error: int) -> None:
    """While a coordinator starts it refuses joins, however long the answer takes: no member comes of that."""
    assert _event(join(T0, "", error=error, took_ms=300)) is None


def test_batch_leave_names_those_that_did_leave() -> None:
    """Members that the coordinator did not know do not leave."""
    members = [{"memberId": name, "groupInstanceId": None, "reason": "closed"} for name in ("a", "b")]
    answers = [{"memberId": "a", "groupInstanceId": None, "errorCode": 0}]
    answers.append({"memberId": "b", "groupInstanceId": None, "errorCode": 25})
    event = _event(line(T0, 13, {"groupId": "g", "members": members}, {"errorCode": 0, "members": answers}))
    assert isinstance(event, Event)
    assert [(each.member_id, each.reason) for each in event.leaving] == [("a", "closed")]


def test_heartbeats_of_the_newer_protocols() -> None:
    """A heartbeat of a group that goes by member epochs says what it owns and what it was given."""
    owned = [{"topicId": "T", "partitions": [0, 1]}]
    request = {"groupId": "g", "memberId": "m", "memberEpoch": 3, "instanceId": "i", "rebalanceTimeoutMs": -1}
    request |= {"subscribedTopicNames": None, "topicPartitions": owned}
    answer = {"errorCode": 0, "memberId": "m", "memberEpoch": 4, "assignment": {"topicPartitions": owned}}
    event = _event(line(T0, 68, request, answer, version=1))
    assert isinstance(event, GroupHeartbeat)
    assert (event.type, event.member_epoch, event.answer_member_epoch) == (HeartbeatType.CONSUMER, 3, 4)
    assert event.owned == event.assignment == {"T": (0, 1)}
    assert _event(line(T0, 68, request, answer | {"errorCode": 110}, version=1)) is None
    share = _event(line(T0, 76, request | {"topicPartitions": None}, answer | {"assignment": None}, version=1))
    assert isinstance(share, GroupHeartbeat)
    assert share.type is HeartbeatType.SHARE


def test_tasks_of_a_streams_member_are_told_apart_by_their_kind() -> None:
    """An active task that becomes a standby task is taken away; tasks that nobody speaks of are as before."""
    task = [{"subtopologyId": "0", "partitions": [0, 1]}]
    request = {"groupId": "g", "memberId": "m", "memberEpoch": 3, "instanceId": None, "rebalanceTimeoutMs": -1}
    none: dict[str, Any] = {"activeTasks": None, "standbyTasks": None, "warmupTasks": None}
    answer = {"errorCode": 0, "memberId": "m", "memberEpoch": 3}
    moved = {"activeTasks": [], "standbyTasks": task, "warmupTasks": []}
    event = _event(line(T0, 88, request | none | {"activeTasks": task}, answer | moved))
    assert isinstance(event, GroupHeartbeat)
    assert (event.type, event.answer_member_epoch) == (HeartbeatType.STREAMS, 3)
    assert (event.owned, event.assignment) == ({"activeTasks/0": (0, 1)}, {"standbyTasks/0": (0, 1)})
    quiet = _event(line(T0, 88, request | none, answer | none))
    assert isinstance(quiet, GroupHeartbeat)
    assert (quiet.owned, quiet.assignment) == (None, None)


@pytest.mark.parametrize("version", [0, 1])
def test_streams_member_says_what_it_is(version: int) -> None:
    """Version 1, of Kafka 4.4, is read as version 0 is; what did not change since is not there."""
    request = {
        "groupId": "g",
        "memberId": "m",
        "memberEpoch": 0,
        "instanceId": "i",
        "rackId": "r",
        "processId": "p",
        "clientTags": [{"key": "zone", "value": "a"}],
        "topology": {"epoch": 2, "subtopologies": []},
    }
    answer = {"errorCode": 0, "memberId": "m", "memberEpoch": 3}
    if version:
        request |= {"taskOffsets": None, "taskEndOffsets": None}
        answer |= {"acceptableRecoveryLag": 10_000, "topologyDescriptionRequired": False}
    event = _event(line(T0, 88, request, answer, version=version))
    assert isinstance(event, GroupHeartbeat)
    assert (event.rack_id, event.process_id, event.client_tags, event.topology_epoch) == ("r", "p", {"zone": "a"}, 2)
    assert (event.group_instance_id, event.api_version) == ("i", version)
    later = {"groupId": "g", "memberId": "m", "memberEpoch": 3, "rackId": None, "clientTags": None, "topology": None}
    quiet = _event(line(T0, 88, later, answer, version=version))
    assert isinstance(quiet, GroupHeartbeat)
    assert (quiet.rack_id, quiet.process_id, quiet.client_tags, quiet.topology_epoch) == (None, None, None, None)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (42, "INVALID_REQUEST"),
        (69, "GROUP_ID_NOT_FOUND"),
        (110, "FENCED_MEMBER_EPOCH"),
        (111, "UNRELEASED_INSTANCE_ID"),
    ],
)
def test_refused_heartbeat_with_an_epoch_is_named_and_not_relayed(code: int, name: str) -> None:
    """A group that the coordinator does not have, or no longer, has no members."""
    request = {"groupId": "g", "memberId": "m", "memberEpoch": 3}
    text = line(T0, 88, request, {"errorCode": code, "memberId": "", "memberEpoch": 0})
    assert error_of(_read(text)) == name
    assert _event(text) is None


def test_times_without_lines_part_what_was_read() -> None:
    """Lines are parted where nothing was logged for long, wherever that is among them."""
    log = RequestLog()
    times = [0, 10, 900, 5_000, 5_100, 9_000, 9_001, 9_002]
    lines = [TailedLine(heartbeat(T0 + ms).encode(), at) for at, ms in enumerate(times)]
    lines.insert(3, TailedLine(b"a line of another logger", 99))
    runs = log.runs(lines, 2_500)
    assert [[each.offset for each in run if each.offset != 99] for run in runs] == [[0, 1, 2], [3, 4], [5, 6, 7]]


@pytest.mark.parametrize("logger", [" (kafka.request.logger)", ""])
@pytest.mark.parametrize(
    "name",
    [
        "a (GroupCoordinator)",
        " (kafka.coordinator.group.GroupCoordinator)",
        "a [kafka-1",
        "a}",
        " " * 32_000,
        "\n}\n" * 9_000,
    ],
    ids=["class", "logger", "thread", "brace", "spaces", "line breaks"],
)
def test_members_are_read_whatever_they_are_called(name: str, logger: str) -> None:
    """An id may hold a logger, a thread or 32 KiB of spaces: the line ends where its JSON does."""
    text = heartbeat(T0, name).removesuffix(" (kafka.request.logger)") + logger
    assert _read(text).request["memberId"] == name


def test_long_requests_are_read() -> None:
    """The leader of a large group sends the assignments of all its members in one request."""
    assignments = [{"memberId": f"m-{number}", "assignment": "x" * 1_000} for number in range(1_000)]
    request = {
        "groupId": "g",
        "generationId": 1,
        "memberId": "m-1",
        "groupInstanceId": None,
        "assignments": assignments,
    }
    assert len(_read(line(T0, 14, request, {"errorCode": 0})).request["assignments"]) == 1_000


@pytest.mark.parametrize(
    "request_json",
    ['{"a":' * 5_000 + "1" + "}" * 5_000, "[" * 50_000, "9" * 5_000, '{"totalTimeMs":1e300}', '{"totalTimeMs":-1}', ""],
)
def test_hostile_lines_are_counted(request_json: str) -> None:
    """No line ends a tap: what is no request is unreadable, also beside an honest one."""
    log = RequestLog()
    text = f'[2026-11-22 02:12:24,836] DEBUG Completed request:{{"a":"JOIN_GROUP","request":{request_json}}}'
    assert log.read(text.encode(), 0) is None
    assert (log.lines, log.unreadable) == (1, 1)


def test_a_mistake_about_a_line_costs_that_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reading raises, the line is counted, and the next one is read."""
    log, text = RequestLog(), heartbeat(T0).encode()

    def read(*_: object) -> object:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("heartwheel.sources.explain.layouts.Layout.read", read)
        assert log.read(text, 0) is None
        assert log.time_of(text) is None
    assert log.unreadable == 1
    assert log.read(text, 0) is not None
