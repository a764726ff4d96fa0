"""Small logs with a coordinator's answers, each judged as Kafka's `GroupMetadataManager` 4.3 judges it, to the word."""

from __future__ import annotations

import json

import pytest

from heartwheel.engine.replay.log import replay_log
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.wire.events import EventType
from heartwheel.wire.verdicts import Verdict
from support.tied_logs import START_MS, TIES, lines_of, rows_of

CONFIG = CoordinatorConfig()

ANSWERS = ("error", "answer_ms", "answer_us", "response_generation_id", "leader")


def _told(lines: list[bytes], end_ms: int) -> list[tuple[int, str, str, str]]:
    return [_in_short(verdict) for verdict in replay_log(lines, CONFIG, START_MS + end_ms)]


def _in_short(verdict: Verdict) -> tuple[int, str, str, str]:
    return verdict.time_ms - START_MS, verdict.kind.value, verdict.member_id or "", verdict.reason


def _without_answers(lines: list[bytes]) -> list[bytes]:
    asked = [json.loads(line) for line in lines]
    return [json.dumps({name: r[name] for name in r if name not in ANSWERS}).encode() for r in asked]


@pytest.mark.parametrize("name", TIES)
def test_ties_are_kafkas(name: str) -> None:
    """Who, what, when and the words of timers that end together are Kafka's, by the rules, with and without answers."""
    end_ms, expected = TIES[name]
    for lines in (lines_of(name), _without_answers(lines_of(name))):
        assert rows_of(replay_log(lines, CONFIG, START_MS + end_ms)) == expected


def test_expired_member_is_named_in_kafkas_words() -> None:
    """Log 1a: the member whose session ends is the one that failed; the other waits for it and is only then removed."""
    assert _told(lines_of("1a"), 60_000)[2:] == [
        (16_000, "member_expired", "A", "Member A in group g has failed, removing it from the group."),
        (16_000, "rebalance_started", "", "removing member A on heartbeat expiration."),
        (26_000, "member_removed_at_join", "B", "Group g removed dynamic members who haven't joined: [B]"),
        (26_000, "group_empty", "", "Group g with generation 2 is now empty."),
    ]


def test_answer_of_one_join_phase_does_not_end_the_next() -> None:
    """Log 2: when a phase was complete is known from answers; a phase that a session's end begins is another one."""
    assert _told(lines_of("2"), 17_000)[1:] == [
        (6_000, "rebalance_completed", "", "Stabilized group g generation 1 with 2 members."),
        (12_000, "member_expired", "A", "Member A in group g has failed, removing it from the group."),
        (12_000, "rebalance_started", "", "removing member A on heartbeat expiration."),
        (16_500, "rebalance_completed", "", "Stabilized group g generation 2 with 1 members."),
    ]


def test_sync_proves_the_join_phase_over_before_its_last_join_is_logged() -> None:
    """Log 3: a sync was accepted at generation 2, so the join that is logged 10 ms later was decided before it."""
    assert [row[:3] for row in _told(lines_of("3"), 17_001)] == [
        (0, "rebalance_started", ""),
        (5_000, "rebalance_completed", ""),
        (5_005, "assignment_received", "B"),
        (6_000, "rebalance_started", ""),
        (6_500, "rebalance_completed", ""),
        (6_511, "assignment_received", "B"),
    ]


@pytest.mark.parametrize("later_ms", [0, 4, 11, 14])
def test_last_join_may_be_logged_up_to_25_ms_late(later_ms: int) -> None:
    """Log 3 with its last join moved: as long as it is within a broker's lateness of the sync, nothing else is told."""
    lines = []
    for text in lines_of("3"):
        request = json.loads(text)
        if request["seq"] in (7, 8):
            for unit, factor in (("ms", 1), ("us", 1_000)):
                request[f"t_{unit}"] += later_ms * factor
                request[f"answer_{unit}"] += later_ms * factor
        lines.append(json.dumps(request).encode())
    decided = _told(lines, 17_001)
    assert (6_500, "rebalance_completed") in [row[:2] for row in decided]
    assert len(decided) == 6


def test_sync_proves_the_join_phase_over_though_a_join_was_never_logged() -> None:
    """Without the last join of log 3 the answers still tell when the phase ended, and who was not there is removed."""
    lines = [text for text in lines_of("3") if json.loads(text)["seq"] < 7]
    assert [row[:3] for row in _told(lines, 6_600)][4:] == [
        (6_500, "member_removed_at_join", "B"),
        (6_500, "rebalance_completed", ""),
        (6_500, "assignment_received", "A"),
    ]


def test_refused_leave_is_no_proof_of_membership() -> None:
    """Log 4: UNKNOWN_MEMBER_ID says that the pending member was gone, so it has expired and did not leave."""
    words = "Pending member P in group g has been removed after session timeout expiration."
    assert _told(lines_of("4"), 10_000) == [(6_000, "pending_member_expired", "P", words)]


def test_accepted_leave_is_proof_of_membership() -> None:
    """The same leave, accepted 12 ms after the deadline, came before the broker's timer acted."""
    lines = [text.replace(b"UNKNOWN_MEMBER_ID", b"NONE") for text in lines_of("4")]
    assert [row[:3] for row in _told(lines, 10_000)] == [(5_999, "pending_member_left", "P")]


def test_refused_leave_of_one_changes_nothing() -> None:
    """A leave of one member that was refused leaves that member where it is, whatever our rules know of it."""
    requests = [json.loads(text) for text in lines_of("2")[:2]]
    leave = {"type": EventType.LEAVE, "group_id": "g", "member_id": "B", "error": "FENCED_INSTANCE_ID"}
    requests.append(leave | {"t_ms": START_MS + 7_000, "answer_ms": START_MS + 7_000})
    decided = _told([json.dumps(request).encode() for request in requests], 11_999)
    assert [row[1] for row in decided] == ["rebalance_started", "rebalance_completed"]
