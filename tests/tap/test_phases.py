"""Join phases: a join that was handled after the end of a phase is dated after it, whenever it arrived."""

from __future__ import annotations

from heartwheel.sources.tap.phases import LoggedPhases
from heartwheel.sources.tap.request_log import RequestLog
from support.request_lines import T0, heartbeat, join


def _begun(phases: LoggedPhases, text: str) -> int:
    answered = RequestLog().read(text.encode(), 0)
    assert answered is not None
    return phases.begun_ms(answered)


def test_join_of_the_next_generation_is_dated_after_the_phase_before() -> None:
    """It arrived before the last join of generation 4, and was answered with 5: it was handled after that phase."""
    phases = LoggedPhases()
    assert _begun(phases, join(T0, "m1", generation=4, took_ms=2)) == 0
    assert _begun(phases, join(T0 + 1, "m2", generation=4, took_ms=900)) == 0
    assert _begun(phases, join(T0 + 3_000, "m3", generation=5, took_ms=3_010)) == T0 + 1
    assert _begun(phases, join(T0 + 3_001, "m1", generation=5, took_ms=40)) == T0 + 1


def test_other_requests_are_dated_by_their_arrival() -> None:
    """Heartbeats, refused joins and joins of generations that are far apart say nothing of that."""
    phases = LoggedPhases()
    assert _begun(phases, join(T0, "m1", generation=4)) == 0
    assert _begun(phases, heartbeat(T0 + 1)) == 0
    assert _begun(phases, join(T0 + 2, "", error=79, given="m9")) == 0
    assert _begun(phases, join(T0 + 3, "m1", generation=9)) == 0


def test_join_that_arrived_before_its_group_was_loaded_is_dated_after_the_load() -> None:
    """A load forgets who has joined. This one was let in, so it was handled after it."""
    phases = LoggedPhases()
    phases.note_load("g", T0)
    assert _begun(phases, join(T0 + 6_000, "m1", generation=2, took_ms=6_010)) == T0 + 1
    phases.note_load("g", T0 + 9_000)
    assert _begun(phases, join(T0 + 8_000, "m1", generation=4, took_ms=1)) == 0
