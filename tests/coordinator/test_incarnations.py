"""Records of a worker that arrive late, or twice, behind those of its next start: what counts, and what does not."""

from __future__ import annotations

import pytest

from coordinator.group_stage import Stage
from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.incarnations import ENDED_MAX, LATE_MS
from heartwheel.coordinator.model import Group
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError, decode_event, decode_events
from heartwheel.wire.events import encode_event as encode
from heartwheel.wire.verdicts import Kind

SESSION_MS = 10_000
OLD, NEW = 1_000, 2_000


class Workers(Stage):
    """A group of workers; times are milliseconds after `T0`."""

    def beats(self, at_ms: int, incarnation: int | None, member: str = "w") -> Answer:
        """Send a heartbeat."""
        fields = {"session_timeout_ms": SESSION_MS, "incarnation": incarnation}
        return self.event(at_ms, EventType.HEARTBEAT, member, **fields)

    def leaves(self, at_ms: int, incarnation: int | None, member: str = "w", **fields: str) -> Answer:
        """Send a leave, or a failure if it has one."""
        return self.event(at_ms, EventType.LEAVE, member, incarnation=incarnation, **fields)

    def ends(self) -> list[tuple[str, str | None, int]]:
        """List who left, failed or expired, and when."""
        return self.said(Kind.MEMBER_LEFT, Kind.MEMBER_FAILED, Kind.MEMBER_EXPIRED)


@pytest.mark.parametrize("fields", [{}, {"failure": "exit code 3"}])
@pytest.mark.parametrize("seen", [True, False])
def test_a_late_leave_ends_no_later_incarnation(fields: dict[str, str], seen: bool) -> None:  # noqa: FBT001 - a parameter
    """A leave or failure of the start before is refused while the next one lives, however late it is."""
    workers = Workers()
    if seen:
        workers.beats(0, OLD)
    workers.beats(100, NEW)
    assert workers.leaves(200, OLD, **fields) is Answer.FENCED_MEMBER_EPOCH
    assert workers.leaves(9_000, OLD, **fields) is Answer.FENCED_MEMBER_EPOCH
    assert workers.ends() == []
    assert workers.leaves(9_500, NEW, **fields) is Answer.NONE
    assert workers.leaves(9_600, OLD, **fields) is Answer.FENCED_MEMBER_EPOCH
    assert workers.beats(9_700, OLD) is Answer.FENCED_MEMBER_EPOCH
    assert [at_ms for _, _, at_ms in workers.ends()] == [9_500]


@pytest.mark.parametrize("beaten", [True, False])
def test_a_repeated_failure_is_reported_once(beaten: bool) -> None:  # noqa: FBT001 - a parameter
    """Also of a worker that failed before its first heartbeat, and also when its next start is there."""
    workers = Workers()
    if beaten:
        workers.beats(0, OLD)
    assert workers.leaves(100, OLD, failure="exit code 3") is Answer.NONE
    assert workers.leaves(200, OLD, failure="exit code 3") is Answer.FENCED_MEMBER_EPOCH
    workers.beats(300, NEW)
    assert workers.leaves(400, OLD, failure="exit code 3") is Answer.FENCED_MEMBER_EPOCH
    assert workers.ends() == [("member_failed", "w", 100)]
    assert workers.leaves(500, NEW, failure="exit code 3") is Answer.NONE
    assert workers.ends()[1:] == [("member_failed", "w", 500)]


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


def test_a_start_that_fails_before_its_first_heartbeat_is_reported() -> None:
    """The session of the start before it, which was killed, still runs."""
    workers = Workers()
    workers.beats(0, OLD)
    assert workers.leaves(100, NEW, failure="cannot start ./worker") is Answer.NONE
    assert workers.ends() == [("member_failed", "w", 100)]


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
    with pytest.raises(RejectedError, match="`incarnation` is said of one worker"):
        decode_event(leave)
    beat = b'{"group_id":"g","member_id":"a","leaving":[{"member_id":"a"}],"incarnation":7,"failure":""}'
    assert [decode_event(beat)] == decode_events([beat])
