"""The parts of a simulated world: clocks that keep to the assumption, a topic, a checkpoint, and the command line."""

from __future__ import annotations

import dataclasses
import re

import pytest

from heartwheel.simulation import draw_plan, simulate, simulate_plan
from heartwheel.simulation.__main__ import main
from heartwheel.simulation.checkpoint import Checkpoint
from heartwheel.simulation.clocks import EPOCH_MS, Clock
from heartwheel.simulation.population import feed
from heartwheel.simulation.story import Story
from heartwheel.spark import state_function
from heartwheel.spark.schema import StateRow


def test_a_clock_drifts_and_steps() -> None:
    """A clock that gains 500 ppm is 1 ms ahead after 2 s, and a step back shows from its moment on."""
    clock = Clock(ahead_ms=-3, drift_ppm=500, steps=((5_000, -40),))
    assert [clock.at(t) - EPOCH_MS for t in (0, 2_000, 4_999, 5_000)] == [-3, 1_998, 4_998, 4_959]


def test_a_topic_keeps_the_order_of_true_time() -> None:
    """Offsets of a partition rise with true time, and its end at a moment counts what has landed by then."""
    plan = draw_plan(2)
    topic = feed(plan, Story()).topic
    for partition, log in enumerate(topic.partitions):
        times = [landed_ms for landed_ms, _ in log]
        assert times == sorted(times)
        assert [record.offset for _, record in log] == list(range(len(log)))
        for landed_ms in times[:20]:
            assert topic.ends_at(landed_ms)[partition] == sum(t <= landed_ms for t in times)


def test_a_batch_without_commit_begins_from_the_state_before_it() -> None:
    """What a lost attempt wrote as state is not what the next attempt reads; offsets and timestamp are the same."""
    checkpoint = Checkpoint({})
    checkpoint.plan({0: 3}, 1_000)
    checkpoint.put_state(0, StateRow(1, 1_000, -1, 1, 1, "lost"))
    assert checkpoint.unfinished
    assert checkpoint.state(0)[5] == ""
    checkpoint.put_state(0, StateRow(1, 1_000, -1, 1, 1, "kept"))
    checkpoint.commit()
    checkpoint.plan({0: 5, 1: 1}, 2_000)
    assert checkpoint.state(0)[5] == "kept"
    assert checkpoint.offsets[1] == ({0: 3}, {0: 5, 1: 1}, 2_000)


def test_a_plan_of_your_own() -> None:
    """A drawn plan may be changed: without crashes, stalls and second triggers nothing is told twice."""
    plan = dataclasses.replace(draw_plan(5), crash_rate=0.0, stall_rate=0.0)
    history = simulate_plan(plan)
    assert history.problems == []
    assert not [name for name in history.seen if name.startswith("crash") or name == "told again"]


def test_a_story_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`--seed` tells what members sent, what the job did and told, in the order of true time, and the judgement."""
    assert main(["--seed", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    times = [int(found[1].replace(",", "")) for line in lines if (found := re.match(r" *([\d,]+)  ", line))]
    assert times == sorted(times)
    assert len(times) > 20
    assert lines[-1] == "seed 5: every promise held"


def test_a_broken_promise_is_named_with_the_command_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that drops its expirations fails: exit code 1, the promise, and how to see that seed again."""
    monkeypatch.setattr(state_function, "topic_of", lambda _: None)
    seed = next(seed for seed in range(20) if simulate(seed).problems)
    assert main(["--seed", str(seed)]) == 1
    assert re.search(r"^P\d is broken: .*missed", capsys.readouterr().out, re.MULTILINE)
    assert main(["--seeds", f"{seed}..{seed + 1}", "--workers", "0"]) == 1
    assert f"again: make simulate SEED={seed}" in capsys.readouterr().out


def test_seeds_are_a_count_or_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    """`--seeds 2` means 0 and 1, `--seeds 7..8` means 7; the end says how many and what they met."""
    for seeds, count in (("2", 2), ("7..8", 1)):
        assert main(["--seeds", seeds, "--workers", "0"]) == 0
        out = capsys.readouterr().out
        assert f"{count} histories, 0 broke a promise" in out
        assert "batch live" in out


@pytest.mark.parametrize("seed", [21488, 26338])
def test_the_oracle_knows_what_the_engine_knows(seed: int) -> None:
    """A record that a full group refuses tells the time all the same; two loads in one millisecond say one thing."""
    assert simulate(seed).problems == []
