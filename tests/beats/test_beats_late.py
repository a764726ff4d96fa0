"""What a worker sends, where answers are lost and records arrive late: which start it is of, and what is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.testing import LogBuilder, run_rules
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdicts import Kind
from heartwheel_beats import Beats, LostError, beats
from heartwheel_beats.member import next_incarnation

T0 = 1_795_239_789_000


class Wire:
    """A sender that keeps all records, and loses the answer to some."""

    def __init__(self, loses: Callable[[Event], bool] = lambda _: False) -> None:
        self.events: list[Event] = []
        self._loses = loses

    def send(self, key: bytes, value: bytes) -> None:  # noqa: ARG002 - as a sender is called
        """Keep a record."""
        event = decode_event(value)
        first = event not in self.events
        self.events.append(event)
        if first and self._loses(event):
            raise LostError("no answer")

    def close(self) -> None:
        """Give up nothing."""

    abandon = close


def _worker(wire: Wire, **options: str) -> Beats:
    """Return a worker whose thread is played by the test."""
    worker = beats("orders", member="w", sender=wire, **options)
    worker._begin()
    return worker


def _fail_by_check(worker: Beats) -> None:
    worker.hold("check x: exit code 1", patience_s=0)
    worker._beat()


def _reported(events: Iterable[Event]) -> list[tuple[str, str | None]]:
    """Say what the rules report of records in this order, one a second, and of silence after them."""
    log = LogBuilder()
    for at, event in enumerate(events):
        log.add(T0 + 1_000 * at, event)
    verdicts = run_rules(log, clock_ms=T0 + 1_000 * len(log.records), config=CoordinatorConfig())
    kinds = (Kind.MEMBER_EXPIRED, Kind.MEMBER_FAILED, Kind.MEMBER_LEFT)
    return [(verdict.kind.value, verdict.failure) for verdict in verdicts if verdict.kind in kinds]


def test_a_start_is_told_from_the_next_one() -> None:
    """All that one start sends names one number, and the next start a greater one."""
    first, second = Wire(), Wire()
    for wire in (first, second):
        worker = _worker(wire)
        worker._beat()
        worker._beat()
        worker.fail("exit code 3")
    (old,), (new,) = ({event.incarnation for event in wire.events} for wire in (first, second))
    assert old is not None
    assert new is not None
    assert old < new


def test_a_start_has_a_greater_number_also_where_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process; a function that beats for each of its calls may be called twice in one tick of the clock."""
    before = next_incarnation()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000)
    assert before < next_incarnation() < next_incarnation()


def test_a_failure_whose_answer_was_lost_is_reported_once() -> None:
    """It is sent again by the same number."""
    wire = Wire(loses=lambda event: event.failure is not None)
    worker = _worker(wire)
    worker._beat()
    worker.fail("exit code 3")
    assert [event.failure for event in wire.events] == [None, "exit code 3", "exit code 3"]
    assert _reported(wire.events) == [("member_failed", "exit code 3")]


@pytest.mark.parametrize(("failure", "kind"), [(None, "member_left"), ("exit code 3", "member_failed")])
def test_the_end_of_a_start_does_not_end_the_next_one(failure: str | None, kind: str) -> None:
    """However its last records arrive: the end late and once more, and a heartbeat behind it."""
    old, new = Wire(), Wire()
    for wire in (old, new):
        worker = _worker(wire)
        worker._beat()
        if failure is None:
            worker.close()
        else:
            worker.fail(failure)
    (beat, end), (next_beat, next_end) = old.events, new.events
    assert _reported([beat, next_beat, end, beat, next_beat, end, next_end, next_beat, end]) == [(kind, failure)]


@pytest.mark.parametrize("lost", [True, False])
def test_a_worker_that_is_well_again_is_heard(lost: bool) -> None:  # noqa: FBT001 - a parameter
    """It beats as another start after a failure by a check, also if the answer to that was lost; it can fail again."""
    wire = Wire(loses=lambda event: lost and event.failure is not None)
    worker = _worker(wire)
    worker._wake.set()  # nothing is waited for before a retry
    worker._beat()
    _fail_by_check(worker)
    worker.go_on()
    worker._beat()
    worker._beat()
    worker.fail("exit code 3")
    assert _reported(wire.events) == [("member_failed", "check x: exit code 1"), ("member_failed", "exit code 3")]


def test_a_job_that_succeeds_after_all_is_expected_again() -> None:
    """Its success is no late record of the run that was over its limit."""
    wire = Wire()
    job = _worker(wire, every="24h", limit="1ms")
    job._began_s -= 1
    job._beat()
    job.close()
    success = wire.events[-1]
    assert success.type is EventType.HEARTBEAT
    assert success.incarnation != wire.events[0].incarnation
    assert _reported(wire.events) == [("member_failed", "not finished within 0.001 s")]
