"""How often a tap writes marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.sources.tap.pace import BUSY_MS, QUIET_MS, MarkSchedule
from heartwheel.wire.relayed import read_mark
from support.request_lines import T0, heartbeat
from support.tap_scene import TapScene


class _Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("events", "length_ms"), [(True, BUSY_MS), (False, QUIET_MS)])
def test_marks_are_as_rare_as_verdicts_allow(*, events: bool, length_ms: int) -> None:
    """Of lines every 20 ms there are two marks a second with events, and one every two seconds without."""
    clock = _Clock()
    pace, written = MarkSchedule(clock), 0
    for at_ms in range(0, 60_000, 20):
        clock.now_s += 0.02
        if events and at_ms % 1_000 == 0:
            pace.note_events()
        if pace.is_due(T0 + at_ms, busy=False):
            pace.note(T0 + at_ms)
            written += 1
    assert written == 60_000 // length_ms


def test_last_mark_is_written_though_the_log_stands_still() -> None:
    """What was passed on just after a mark is said soon, also if no line follows it; and nothing is said twice."""
    clock = _Clock()
    pace = MarkSchedule(clock)
    assert pace.is_due(T0, busy=False)
    pace.note(T0)
    pace.note_events()
    assert not pace.is_due(T0 + 10, busy=False)
    clock.now_s += BUSY_MS / 1000
    assert pace.is_due(T0 + 10, busy=False)
    assert not pace.is_due(T0, busy=False)


def test_mark_of_a_gap_waits_for_nothing() -> None:
    """After a gap it matters what was told before it."""
    pace = MarkSchedule(_Clock())
    pace.note(T0)
    assert pace.is_due(T0 + 1, busy=False, at_once=True)
    assert not pace.is_due(T0, busy=False, at_once=True)


def test_held_groups_are_told_of_as_events_are() -> None:
    """While a group is held back marks are as frequent as with events."""
    pace = MarkSchedule(_Clock())
    pace.note(T0)
    assert pace.is_due(T0 + BUSY_MS, busy=True)
    assert not pace.is_due(T0 + BUSY_MS, busy=False)


def test_marks_cost_no_more_bytes_than_events(tmp_path: Path) -> None:
    """Three consumers that beat every 500 ms, as they are by a log that is followed: marks are the smaller part."""
    scene = TapScene(tmp_path)
    with scene.running():
        written = 0
        while len(scene.topic.values) < 60:
            written += 1
            scene.write(*(heartbeat(T0 + written * 500, member) for member in ("m1", "m2", "m3")))
    marks = [value for value in scene.topic.values if read_mark(value) is not None]
    assert marks
    assert 2 * sum(map(len, marks)) < sum(map(len, scene.topic.values))
