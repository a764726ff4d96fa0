"""Records of a worker that arrive late, or twice: what they are answered, and what is remembered of an end.

`tests/audit/test_late_records.py` has who ends by such records, in the engine and in the audit.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group_stage import T0, Stage
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.incarnations import ENDED_MAX, LATE_MS
from heartwheel.engine.rules.model import Group
from heartwheel.wire.event_codec import decode_event, decode_events
from heartwheel.wire.event_codec import encode_event as encode
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError
from heartwheel.wire.verdicts import Kind

SESSION_MS = 10_000
OLD, NEW = 1_000, 2_000


class Workers(Stage):
    """A group of workers; times are milliseconds after `T0`."""

    def beats(self, at_ms: int, incarnation: int | None, member: str = "w", **fields: Any) -> Answer:
        """Send a heartbeat."""
        fields = {"session_timeout_ms": SESSION_MS, "incarnation": incarnation, **fields}
        return self.event(at_ms, EventType.HEARTBEAT, member, **fields)

    def leaves(self, at_ms: int, incarnation: int | None, member: str = "w", **fields: Any) -> Answer:
        """Send a leave, or a failure if it has one."""
        return self.event(at_ms, EventType.LEAVE, member, incarnation=incarnation, **fields)

    def ends(self) -> list[tuple[str, str | None, int]]:
        """List who left, failed or expired, and when."""
        return self.said(Kind.MEMBER_LEFT, Kind.MEMBER_FAILED, Kind.MEMBER_EXPIRED)


@pytest.mark.parametrize("fields", [{}, {"failure": ""}])
@pytest.mark.parametrize("known", [True, False])
def test_a_heartbeat_behind_its_own_leave_makes_no_member(fields: dict[str, str], known: bool) -> None:  # noqa: FBT001
    """Whether or not the worker was heard of before its leave: nobody arrives, and nobody expires."""
    workers = Workers()
    workers.beats(0, None, "other")
    if known:
        workers.beats(0, OLD)
    workers.leaves(100, OLD, **fields)
    said = workers.ends()
    assert workers.beats(200, OLD) is Answer.FENCED_MEMBER_EPOCH
    assert list(workers.group.members) == ["other"]
    workers.beats(9_000, None, "other")
    workers.manager.advance(workers.manager.group.last_event_ms + SESSION_MS - 1)
    assert workers.ends() == said


def test_an_end_is_remembered_for_as_long_as_a_record_may_be_late() -> None:
    """Two minutes, and not at the end of them: whoever uses a number again is heard then."""
    workers = Workers()
    workers.beats(0, OLD)
    workers.leaves(100, OLD)
    assert workers.beats(100 + LATE_MS - 1, OLD) is Answer.FENCED_MEMBER_EPOCH
    assert workers.beats(100 + LATE_MS, OLD) is Answer.NONE
    assert workers.leaves(200 + LATE_MS, OLD) is Answer.NONE


def test_a_clock_that_was_set_back_locks_nobody_out() -> None:
    """An end refuses nothing but its own number, and a member that nobody else keeps alive is its worker's."""
    workers = Workers()
    workers.beats(0, NEW)
    workers.leaves(100, NEW)
    assert workers.beats(200, OLD) is Answer.NONE
    assert workers.leaves(300, OLD) is Answer.NONE

    for beats_ms, answer in ((SESSION_MS - 1, Answer.FENCED_MEMBER_EPOCH), (SESSION_MS, Answer.NONE)):
        killed = Workers()
        killed.beats(0, NEW)
        for at_ms in (0, 4_000, 8_000, beats_ms):
            assert killed.beats(5_000 + at_ms, OLD) is Answer.NONE
        assert killed.leaves(16_000, OLD, failure="exit code 3") is answer
        assert killed.ends() == ([("member_failed", "w", 16_000)] if answer is Answer.NONE else [])


def test_a_late_heartbeat_leaves_the_member_with_its_next_start() -> None:
    """What a slow gateway held back, heartbeats and the leave behind them, takes nothing from the next start."""
    workers = Workers()
    for at_ms in range(0, 2 * SESSION_MS, 2_500):
        workers.beats(at_ms, NEW)
        workers.beats(at_ms + 1, OLD)
    assert workers.leaves(2 * SESSION_MS, OLD) is Answer.FENCED_MEMBER_EPOCH
    assert workers.leaves(2 * SESSION_MS, NEW) is Answer.NONE


def test_p1_a_late_heartbeat_takes_no_instance_id_from_a_later_start() -> None:
    """P1: a static worker that came back under another id leaves in order, and nobody expires a session later."""
    workers = Workers()
    workers.beats(0, OLD, "w-0", group_instance_id="i")
    workers.beats(100, NEW, "w-1", group_instance_id="i")
    assert workers.beats(200, OLD, "w-0", group_instance_id="i") is Answer.FENCED_INSTANCE_ID
    assert workers.leaves(300, NEW, "w-1", group_instance_id="i") is Answer.NONE
    workers.manager.advance(T0 + 300 + SESSION_MS)
    assert workers.ends() == [("member_left", "w-1", 300)]

    set_back = Workers()
    set_back.beats(0, NEW, "w-0", group_instance_id="i")
    for at_ms, answer in ((SESSION_MS - 1, Answer.FENCED_INSTANCE_ID), (SESSION_MS, Answer.NONE)):
        assert set_back.beats(at_ms, OLD, "w-1", group_instance_id="i") is answer
    assert set_back.ends() == [("member_expired", "w-0", SESSION_MS)]


def test_a_start_that_fails_before_its_first_heartbeat_is_reported() -> None:
    """The session of the start before it, which was killed, still runs."""
    workers = Workers()
    workers.beats(0, OLD)
    assert workers.leaves(100, NEW, failure="cannot start ./worker") is Answer.NONE
    assert workers.ends() == [("member_failed", "w", 100)]


@pytest.mark.parametrize("fields", [{}, {"session_timeout_ms": 2**31 - 1}])
def test_p1_a_start_whose_failure_is_refused_has_ended(fields: dict[str, Any]) -> None:
    """P1: its late heartbeat makes no member that expires, though the group has room again, and a session is allowed.

    The failure is refused as the group is full, or as its session timeout is not allowed.
    """
    workers = Workers(group_max_size=1, presence_max_session_timeout_ms=SESSION_MS)
    workers.beats(0, NEW, "other")
    refusal = Answer.INVALID_SESSION_TIMEOUT if "session_timeout_ms" in fields else Answer.GROUP_MAX_SIZE_REACHED
    assert workers.leaves(100, OLD, failure="exit code 3", **fields) is refusal
    workers.leaves(200, NEW, "other")
    assert workers.beats(300, OLD) is Answer.FENCED_MEMBER_EPOCH
    assert workers.leaves(400, OLD, failure="exit code 3", **fields) is Answer.FENCED_MEMBER_EPOCH
    assert workers.beats(500, NEW) is Answer.NONE
    workers.manager.advance(T0 + 500 + SESSION_MS)
    assert workers.ends() == [("member_left", "other", 200), ("member_expired", "w", 500 + SESSION_MS)]


def test_records_without_the_field_are_taken_as_they_come() -> None:
    """They end whoever is there, they arrive behind a leave, and a member that they keep alive is anybody's."""
    workers = Workers()
    workers.beats(0, NEW)
    assert workers.leaves(100, None) is Answer.NONE
    assert workers.beats(200, NEW) is Answer.NONE
    workers.leaves(300, NEW)
    assert workers.beats(400, None) is Answer.NONE
    assert workers.leaves(500, OLD) is Answer.NONE


def test_a_leave_that_finds_another_instance_ends_nothing() -> None:
    """A member that stays is not one that ended: its next heartbeat keeps it alive."""
    workers = Workers()
    workers.beats(0, OLD)
    assert workers.leaves(100, OLD, group_instance_id="nobody's") is Answer.UNKNOWN_MEMBER_ID
    assert workers.beats(200, OLD) is Answer.NONE


def test_a_static_worker_that_is_named_by_its_instance_alone() -> None:
    """Its leave goes by the member's incarnation, too, and its late heartbeat is known by its member id."""
    workers = Workers()
    workers.event(0, EventType.HEARTBEAT, "w", group_instance_id="i", incarnation=NEW)
    assert workers.event(100, EventType.LEAVE, group_instance_id="i", incarnation=OLD) is Answer.FENCED_MEMBER_EPOCH
    assert workers.event(200, EventType.LEAVE, group_instance_id="i", incarnation=NEW) is Answer.NONE
    assert workers.beats(300, NEW) is Answer.FENCED_MEMBER_EPOCH


def test_p6_ends_are_bounded() -> None:
    """P6: a group remembers the last thousand, whatever their ids are, and none that are over."""
    workers = Workers()
    workers.beats(0, 0, "stays")
    for number in range(ENDED_MAX + 1):
        workers.leaves(number, OLD, f"w{number}", failure="")
    group = workers.group
    assert isinstance(group, Group)
    assert len(group.ended) == ENDED_MAX
    assert workers.beats(2_000, OLD, "w0") is Answer.NONE
    assert workers.beats(2_000, OLD, "w1") is Answer.FENCED_MEMBER_EPOCH
    workers.beats(9_000, 0, "stays")
    for at_ms in range(9_000, 9_000 + LATE_MS, 9_000):
        workers.beats(at_ms, 0, "stays")
    workers.leaves(9_000 + LATE_MS, OLD, "last", failure="")
    assert len(group.ended) == 1


@pytest.mark.parametrize("number", [-1, 2**63, "7", 1.5])
def test_an_incarnation_is_a_number(number: float | str) -> None:
    """A whole one that 64 bits hold, and not negative."""
    value = (
        encode(Event(group_id="g", member_id="m"))[:-1] + b',"incarnation":' + repr(number).replace("'", '"').encode()
    )
    with pytest.raises(RejectedError) as error:
        decode_event(value + b"}")
    assert error.value.cause is RejectCause.BAD_FIELD


def test_a_leave_of_several_names_no_incarnation() -> None:
    """Each of them has its own; of a heartbeat, which names nobody else, that says nothing."""
    leave = b'{"type":"leave","group_id":"g","leaving":[{"member_id":"a"}],"incarnation":7}'
    with pytest.raises(RejectedError, match="`incarnation` is only allowed for one worker"):
        decode_event(leave)
    beat = b'{"group_id":"g","member_id":"a","leaving":[{"member_id":"a"}],"incarnation":7,"failure":""}'
    assert [decode_event(beat)] == decode_events([beat])
