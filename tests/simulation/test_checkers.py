"""Each checker of the simulator finds what it is there for: a history that is right, with one thing made wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from heartwheel.proof.simulation import draw_plan
from heartwheel.proof.simulation.checkers.judge import HistoryJudge
from heartwheel.proof.simulation.run import run_history
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.checkpoint import Checkpoint, SinkRecord

PLAIN: Final = 3
"""A history with expirations."""

FED: Final = 8
"""One with broken records, and with groups that feeds pass on."""

FORGOTTEN: Final = 4710
"""One whose only such group the job forgets, and with it the first of its two feeds."""


def _judged(seed: int, spoil: Callable[[Checkpoint], None]) -> list[str]:
    """Run a history, spoil what is left of it, and return the broken promises."""
    plan, story = draw_plan(seed), Story()
    topic, job = run_history(plan, story)
    assert list(HistoryJudge(plan, topic, job.checkpoint, job.runs).problems()) == []
    spoil(job.checkpoint)
    return [f"{one.promise} {one.words}" for one in HistoryJudge(plan, topic, job.checkpoint, job.runs).problems()]


def _first(checkpoint: Checkpoint, topic: str) -> int:
    return next(at for at, written in enumerate(checkpoint.sink) if written.topic == topic)


def _changed(written: SinkRecord, **fields: object) -> SinkRecord:
    return written._replace(value=msgspec.json.encode({**msgspec.json.decode(written.value), **fields}).decode())


def _lose_a_row(checkpoint: Checkpoint) -> None:
    lost = msgspec.json.decode(checkpoint.sink[_first(checkpoint, "expirations")].value)["id"]
    checkpoint.sink[:] = [written for written in checkpoint.sink if lost not in written.value]


def _contradict(checkpoint: Checkpoint) -> None:
    written = checkpoint.sink[_first(checkpoint, "expirations")]
    checkpoint.sink.append(_changed(written, client_host="/10.9.9.9"))


def _name_another_batch(checkpoint: Checkpoint) -> None:
    at = _first(checkpoint, "expirations")
    checkpoint.sink[at] = _changed(checkpoint.sink[at], detected_ms=1)


def _write_late(checkpoint: Checkpoint) -> None:
    checkpoint.sink[:] = [written._replace(batch=checkpoint.commits - 1) for written in checkpoint.sink]


def _write_early(checkpoint: Checkpoint) -> None:
    checkpoint.sink[:] = [written._replace(batch=0) for written in checkpoint.sink]


def _set_the_clock_back(checkpoint: Checkpoint) -> None:
    checkpoint._states[checkpoint.commits, 0] = checkpoint.state(0)._replace(clock_ms=0)


def _forget_the_state(checkpoint: Checkpoint) -> None:
    checkpoint._states[checkpoint.commits, 0] = checkpoint.state_at(checkpoint.commits // 2, 0)


def _lose_a_reject(checkpoint: Checkpoint) -> None:
    del checkpoint.sink[_first(checkpoint, "rejects")]


@pytest.mark.parametrize(
    ("seed", "spoil", "words"),
    [
        (PLAIN, _lose_a_row, "P3 .*in one batch"),
        (PLAIN, _lose_a_row, "P5 audit: missed"),
        (PLAIN, _contradict, "P3 one id, two contents"),
        (PLAIN, _name_another_batch, "P3 detected_ms is not the batch's"),
        (PLAIN, _write_late, "P2 was due at clock"),
        (PLAIN, _set_the_clock_back, "P1 the clock of shard 0 went back"),
        (PLAIN, _forget_the_state, "P3 .*the state that is left"),
        (FED, _write_late, "P2 was due by marks"),
        (FED, _write_early, "P1 the feeds' marks had come to"),
        (FORGOTTEN, _write_early, "P1 the feeds' marks had come to .*group_id='fed-87'"),
        (FED, _lose_a_reject, "P6 missing from the rejects topic"),
        (FED, _lose_a_reject, "P6 audit: reject_missing"),
    ],
)
def test_a_checker_finds_what_it_is_there_for(seed: int, spoil: Callable[[Checkpoint], None], words: str) -> None:
    """P1-P6: a history that was spoiled is named with the promise that it breaks."""
    found = _judged(seed, spoil)
    assert [one for one in found if re.match(words, one)]
