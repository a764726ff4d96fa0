"""Answers as evidence: requests and timers that are too close to tell are put into the order that explains them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heartwheel.engine.replay.log import LogReplay, replay_log
from heartwheel.engine.replay.recorded import decode_line
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.wire.events import RejectedError

CONFIG = CoordinatorConfig(group_min_session_timeout_ms=10, group_initial_rebalance_delay_ms=100)


def _join(t_ms: int, who: str, answer_ms: int, generation: int, **more: Any) -> dict[str, Any]:
    return {
        "t_ms": t_ms,
        "type": "join",
        "group_id": "g",
        "member_id": "",
        "assigned_member_id": who,
        "session_timeout_ms": 1000,
        "rebalance_timeout_ms": 2000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range"}],
        "error": "NONE",
        "answer_ms": answer_ms,
        "response_generation_id": generation,
    } | more


def _ask(t_ms: int, kind: str, who: str, generation: int, error: str = "NONE", **more: Any) -> dict[str, Any]:
    fields = {"t_ms": t_ms, "type": kind, "group_id": "g", "member_id": who, "generation_id": generation}
    return fields | {"error": error, "answer_ms": t_ms} | more


def _said(requests: list[dict[str, Any]], until_ms: int) -> list[str]:
    verdicts = replay_log([json.dumps(r).encode() for r in requests], CONFIG, until_ms)
    return [f"{v.time_ms} {v.kind.value} {v.member_id or v.generation_id}" for v in verdicts]


START = [_join(0, "a", 101, 1), _ask(105, "sync", "a", 1, answer_ms=105)]
"""One member, Stable from 105 on, with a session until 1105."""


def test_late_timer_does_not_undo_an_accepted_heartbeat() -> None:
    """A heartbeat that was accepted just after its deadline came before the broker's timer acted."""
    assert _said([*START, _ask(1110, "heartbeat", "a", 1)], 2000)[-1] == "105 assignment_received a"


def test_heartbeat_long_after_its_deadline_is_late_whatever_was_answered() -> None:
    """Evidence counts only where order is ambiguous: the rules decide what is not."""
    assert "1105 member_expired a" in _said([*START, _ask(1200, "heartbeat", "a", 1)], 2000)


def test_refused_requests_do_not_count() -> None:
    """A heartbeat that the broker refused keeps nobody alive."""
    assert "1105 member_expired a" in _said([*START, _ask(500, "heartbeat", "a", 1, "UNKNOWN_MEMBER_ID")], 2000)


def test_accepted_generation_proves_that_the_join_phase_is_over() -> None:
    """A sync of the next generation that arrives with the last join is decided after it."""
    again = {"member_id": "a", "assigned_member_id": "a"}
    requests = [
        *START,
        _join(300, "b", 402, 2, api_version=3),
        _ask(401, "sync", "a", 2),
        _join(402, "a", 402, 2, **again),
        _ask(403, "sync", "b", 2),
    ]
    assert _said(requests, 500)[-2:] == ["402 rebalance_completed 2", "402 assignment_received a"]


def test_first_join_to_be_decided_leads() -> None:
    """Of two first joins that arrive together the one that the answers name as the leader came first."""
    requests = [
        _join(0, "a", 201, 1, leader="b", api_version=3),
        _join(1, "b", 201, 1, leader="b", api_version=3),
        _ask(210, "sync", "a", 1, answer_ms=230),
        _ask(220, "sync", "b", 1, answer_ms=230),
    ]
    assert "220 assignment_received b" in _said(requests, 300)


def test_leaders_assignment_is_stored_when_it_was_answered() -> None:
    """Until the leader's sync was answered the group is not Stable: its join in between changes nothing."""
    again = {"member_id": "a", "assigned_member_id": "a"}
    requests = [
        _join(0, "a", 101, 1),
        _ask(105, "sync", "a", 1, answer_ms=120),
        _join(110, "a", 110, 1, **again),
    ]
    assert _said(requests, 500) == ["0 rebalance_started 0", "100 rebalance_completed 1", "105 assignment_received a"]


def test_old_clients_are_let_in_with_their_first_join() -> None:
    """A first join that was not sent back for its id makes a member, one that was makes a pending member."""
    assert _said([_join(0, "a", 101, 1, api_version=3)], 50) == ["0 rebalance_started 0"]
    assert _said([_join(0, "a", 0, -1, error="MEMBER_ID_REQUIRED")], 50) == []


def test_parked_join_that_was_never_told_its_id_takes_part() -> None:
    """A first join that waited and was then cut short had its effect, under an id that nobody knows."""
    parked = _join(0, "", 101, -1, error="UNKNOWN_MEMBER_ID") | {"api_version": 3}
    assert _said([parked], 50) == ["0 rebalance_started 0"]


def test_request_that_is_refused_as_invalid_is_skipped() -> None:
    """A line that is no event is an error, unless a broker's answer says that it saw so itself."""
    line = {"t_ms": 1, "type": "commit", "group_id": "g", "member_id": "", "generation_id": -1}
    with pytest.raises(RejectedError, match="member_id"):
        decode_line(json.dumps(line).encode(), 1)
    assert decode_line(json.dumps(line | {"error": "NONE"}).encode(), 1) is None


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"type":"heartbeat","group_id":"g","member_id":"m"}'])
def test_bad_line_is_refused_and_the_replay_goes_on(line: bytes) -> None:
    """A line that cannot be read is refused by itself; the next one counts."""
    run = LogReplay(CONFIG)
    with pytest.raises(RejectedError):
        run.feed(line)
    run.feed(json.dumps({"t_ms": 5, "group_id": "g", "member_id": "m"}).encode())
    assert len(run.finish()) == 2


def test_verdicts_come_in_the_order_of_time() -> None:
    """Groups take turns in the output by time, though each is run by itself."""
    run = LogReplay(CONFIG)
    for t_ms, group in ((0, "b"), (10, "a"), (30_000, "a")):
        run.feed(json.dumps({"t_ms": t_ms, "group_id": group, "member_id": "m", "session_timeout_ms": 20_000}).encode())
    verdicts = run.finish(60_000)
    times = [verdict.time_ms for verdict in verdicts]
    assert times == sorted(times)
    assert len({verdict.group_id for verdict in verdicts}) == 2
