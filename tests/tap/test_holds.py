"""Holds: nobody is judged while a join of theirs may be parked, and nobody for longer than that."""

from __future__ import annotations

from heartwheel.explain.facts import Fact, Said
from heartwheel.tap.holds import Hold, Holds
from heartwheel.tap.request_log import RequestLog
from heartwheel.tap.settling import SETTLE_MS
from support.request_lines import T0, heartbeat, join

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


def test_coordinators_own_word_begins_and_ends_a_hold() -> None:
    """With the coordinator's own log a hold begins with the join phase, and ends when the group is stable or empty."""
    holds = Holds()
    for said in (Said.STABILIZED, Said.EMPTY):
        holds.note_fact(Fact(said=Said.TRIGGER, group_id="g", time_ms=T0))
        assert holds.held(T0 + 10_000) == {"g": T0}
        holds.note_fact(Fact(said=said, group_id="g", time_ms=T0 + 10_000))
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
