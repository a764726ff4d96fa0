"""Holds: nobody is judged while a join of theirs may be parked, and nobody for longer than that."""

from __future__ import annotations

import pytest

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.tap import holds as holds_module
from heartwheel.sources.tap.holds import Hold, Holds
from heartwheel.sources.tap.request_log import RequestLog
from heartwheel.sources.tap.settling import SETTLE_MS
from heartwheel.wire.relayed import HELD_BYTES_MAX, HELD_MAX
from support.request_lines import T0, heartbeat, join, line

_REBALANCE_IN_PROGRESS, _MEMBER_ID_REQUIRED = 27, 79


def _note(holds: Holds, *lines: str) -> None:
    log = RequestLog()
    for text in lines:
        answered = log.read(text.encode(), 0)
        assert answered is not None
        holds.note(answered)


def test_group_is_held_from_the_first_sign_of_a_join_phase() -> None:
    """Who is told to join again may have its join parked from then on; later signs do not move the hold."""
    holds = Holds()
    _note(holds, heartbeat(T0), heartbeat(T0 + 1_000, error=_REBALANCE_IN_PROGRESS, took_ms=3))
    _note(holds, heartbeat(T0 + 2_000, "m2", error=_REBALANCE_IN_PROGRESS))
    assert holds.held(T0 + 5_000) == {"g": T0 + 997}


def test_first_join_holds_its_group() -> None:
    """A member that was given an id comes back at once, and is parked until the join phase ends."""
    holds = Holds()
    _note(holds, join(T0, "", error=_MEMBER_ID_REQUIRED, given="m9"))
    assert holds.held(T0 + 5_000) == {"g": T0 - 1}


def test_answered_join_ends_the_hold_once_all_of_its_time_is_read() -> None:
    """The joins of a phase are logged together, though not in one moment: the hold ends with the mark behind it."""
    holds = Holds()
    _note(holds, heartbeat(T0, error=_REBALANCE_IN_PROGRESS), join(T0 + 9_000, took_ms=8_900))
    assert holds.held(T0 + 8_999) == {"g": T0 - 1}
    assert holds.held(T0 + 9_000) == {}


def test_heartbeat_of_before_ends_no_hold() -> None:
    """A heartbeat that arrived before the first sign, and is logged after it, proves nothing."""
    holds = Holds()
    _note(holds, heartbeat(T0, error=_REBALANCE_IN_PROGRESS, took_ms=5), heartbeat(T0 + 20, "m2", took_ms=30))
    assert holds.held(T0 + 60_000 - 10) == {"g": T0 - 5}
    _note(holds, heartbeat(T0 + 70, "m2", took_ms=1))
    assert holds.held(T0 + 70) == {}


def _consumer_heartbeat(logged_ms: int, epoch: int, error: int = 0) -> str:
    request = {"groupId": "g", "memberId": "n1", "memberEpoch": epoch}
    return line(logged_ms, 68, request, {"errorCode": error, "memberId": "n1", "memberEpoch": epoch}, version=1)


@pytest.mark.parametrize(
    ("epoch", "error", "ends"),
    [(3, 0, True), (0, 0, False), (-1, 0, False), (3, 69, False)],
    ids=["accepted", "joins", "leaves", "group id not found"],
)
def test_in_a_consumer_group_no_join_waits(epoch: int, error: int, *, ends: bool) -> None:
    """A classic member in it is told to join again, and answered at once: nothing is parked, so nobody need wait."""
    holds = Holds()
    _note(holds, heartbeat(T0, error=_REBALANCE_IN_PROGRESS), _consumer_heartbeat(T0 + 1_000, epoch, error))
    assert holds.held(T0 + 1_000) == ({} if ends else {"g": T0 - 1})


def test_coordinators_own_word_begins_and_ends_a_hold() -> None:
    """With the coordinator's own log a hold begins with the join phase, and ends when the group is stable or empty."""
    holds = Holds()
    for said in (FactKind.STABILIZED, FactKind.EMPTY):
        holds.note_fact(Fact(kind=FactKind.TRIGGER, group_id="g", time_ms=T0))
        assert holds.held(T0 + 10_000) == {"g": T0}
        holds.note_fact(Fact(kind=said, group_id="g", time_ms=T0 + 10_000))
        assert holds.held(T0 + 10_000) == {}


def test_hold_without_a_sign_ends_with_the_rebalance_timeout() -> None:
    """If everybody has died nobody's join is answered; no join waits longer than the longest rebalance timeout."""
    holds = Holds()
    _note(holds, join(T0, rebalance_ms=20_000), heartbeat(T0 + 1_000, error=_REBALANCE_IN_PROGRESS))
    assert holds.held(T0 + 20_998) == {"g": T0 + 999}
    assert holds.held(T0 + 20_999) == {}


def test_next_join_phase_right_after_one_keeps_what_may_be_parked() -> None:
    """A phase that begins while joins of the one before may still be logged continues its hold."""
    holds = Holds()
    _note(holds, heartbeat(T0, error=_REBALANCE_IN_PROGRESS), join(T0 + 9_000, took_ms=8_900))
    _note(holds, heartbeat(T0 + 9_000 + SETTLE_MS, error=_REBALANCE_IN_PROGRESS))
    assert holds.held(T0 + 9_500) == {"g": T0 - 1}


def test_holds_outlive_a_restart() -> None:
    """A tap that goes on from its positions holds what it held."""
    holds = Holds({"g": Hold(T0, T0 + 60_000)})
    assert holds.held(T0 + 1_000) == {"g": T0}


def test_hold_after_a_restart_lasts_as_long_as_joins_may_wait() -> None:
    """A join of before a restart tells how long its group may be in a join phase that begins after it."""
    before = Holds()
    _note(before, join(T0, rebalance_ms=3_600_000))
    holds = Holds(before.groups, before.rebalance_ms)
    _note(holds, heartbeat(T0 + 1_000, error=_REBALANCE_IN_PROGRESS))
    assert holds.held(T0 + 3_600_998) == {"g": T0 + 999}
    assert holds.held(T0 + 3_600_999) == {}


@pytest.mark.parametrize(
    ("error", "limit_ms"),
    [(0, 2**31 - 1), (_REBALANCE_IN_PROGRESS, 2**31 - 1), (30, 60_000), (_MEMBER_ID_REQUIRED, 60_000), (25, 60_000)],
    ids=["accepted", "rebalance in progress", "not authorized", "member id required", "unknown member"],
)
def test_timeout_of_a_join_counts_if_it_was_let_in(error: int, limit_ms: int) -> None:
    """A client that the coordinator refuses says nothing about how long the group's members may wait."""
    holds = Holds()
    _note(holds, join(T0), join(T0 + 10, "", error=error, given="evil", rebalance_ms=2**31 - 1), heartbeat(T0 + 20))
    holds.held(T0 + 500)
    _note(holds, heartbeat(T0 + 1_000, error=_REBALANCE_IN_PROGRESS))
    assert holds.groups["g"].until_ms == T0 + 999 + limit_ms


def test_heartbeats_keep_a_groups_timeout_among_those_that_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved each second has a bound; who was not heard for longest is forgotten first."""
    monkeypatch.setattr(holds_module, "_GROUPS_BYTES_MAX", 6)
    holds = Holds()
    _note(holds, join(T0, rebalance_ms=7_000), _join_of("é2"), heartbeat(T0), _join_of("é3"))
    assert holds.rebalance_ms == {"g": 7_000, "é3": 5_000}
    monkeypatch.setattr(holds_module, "_GROUPS_MAX", 1)
    _note(holds, heartbeat(T0))
    assert holds.rebalance_ms == {"g": 7_000}


def _join_of(group: str, error: int = 0) -> str:
    request = {"groupId": group, "sessionTimeoutMs": 6_000, "rebalanceTimeoutMs": 5_000, "memberId": ""}
    return line(T0, 11, request, {"errorCode": error, "generationId": 1, "memberId": "m"}, version=9)


def test_first_joins_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """First joins that nobody finishes are not kept without end; a group with members is held all the same."""
    monkeypatch.setattr(holds_module, "_STRANGERS_MAX", 3)
    holds = Holds()
    _note(holds, *(_join_of(f"e{number}", _MEMBER_ID_REQUIRED) for number in range(5)))
    _note(holds, heartbeat(T0, error=_REBALANCE_IN_PROGRESS))
    assert list(holds.groups) == ["e0", "e1", "e2", "g"]


def test_groups_with_members_are_named_before_those_without() -> None:
    """What does not fit in a mark is of groups in which nobody is known, those first that are held longest."""
    holds = Holds(rebalance_ms={"g": 60_000})
    strangers = {f"{number:03}" + "é" * 500: T0 + number for number in range(1, HELD_BYTES_MAX // 1_003 + 2)}
    passed_ms, named = holds.named(T0 + 1_000, {"g": T0, **strangers})
    assert passed_ms == T0 + 1_000
    assert named == {group_id: at_ms for group_id, at_ms in {"g": T0, **strangers}.items() if group_id in named}
    assert set(strangers) - set(named) == {group_id for group_id, at_ms in strangers.items() if at_ms == T0 + 1}


def test_too_many_groups_with_members_do_not_stop_a_mark_for_good() -> None:
    """Beyond what a mark can name it waits for groups with members, and no longer than for a join by default."""
    groups = [str(number) for number in range(HELD_MAX + 2)]
    holds = Holds(rebalance_ms=dict.fromkeys(groups, 2**31 - 1))
    held = {group_id: T0 + int(group_id) for group_id in groups}
    assert holds.named(T0 + 300_000 - 1, held) == (T0, {})
    assert holds.named(T0 + 300_000, held) == (T0 + 1, {})
    passed_ms, named = holds.named(T0 + 300_001, held)
    assert (passed_ms, set(groups) - set(named)) == (T0 + 300_001, {"0", "1"})
