"""The parts of a simulated world: clocks, a topic, a ticker, a checkpoint, and the command line."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from heartwheel.engine.heartbeats import advance
from heartwheel.engine.runtime.state.schema import StateRow
from heartwheel.proof.simulation import draw_plan, simulate, simulate_plan
from heartwheel.proof.simulation.__main__ import main
from heartwheel.proof.simulation.plan.clocks import EPOCH_MS, HostClock
from heartwheel.proof.simulation.plan.parameters import Plan, PlannedOutage, TickerFault
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.survey import survey
from heartwheel.proof.simulation.world.checkpoint import Checkpoint
from heartwheel.proof.simulation.world.population import feed
from heartwheel.proof.simulation.world.ticker import SimulatedTicker
from heartwheel.proof.simulation.world.topic import SimulatedTopic
from heartwheel.wire.tick import Tick, read_tick


def test_a_clock_drifts_and_steps() -> None:
    """A clock that gains 500 ppm is 1 ms ahead after 2 s; a step back stays."""
    clock = HostClock(ahead_ms=-3, drift_ppm=500, steps=((5_000, -40),))
    assert [clock.at(t) - EPOCH_MS for t in (0, 2_000, 4_999, 5_000)] == [-3, 1_998, 4_998, 4_959]


def _plan(**changes: Any) -> Plan:
    """Draw a plan in which nothing goes wrong, but for what a test asks for."""
    calm: dict[str, Any] = {
        "partitions": 2,
        "grown": None,
        "brokers": (HostClock(),),
        "leader_changes": (),
        "outages": (),
        "transactions": (),
        "untimed": (),
        "troubles": (),
        "liar": False,
        "rival_rate": 0.0,
        "copy_rate": 0.0,
        "garbage": 0,
        "tick_interval_ms": 200,
    }
    return dataclasses.replace(draw_plan(2), **calm | changes)


def _ticks(topic: SimulatedTopic, partition: int) -> list[tuple[int, Tick]]:
    """List the ticks in a partition: when they landed, true ms, and what they say."""
    landed = [(landed.landed_ms, read_tick(landed.record.value)) for landed in topic.partitions[partition]]
    return [(at_ms, tick) for at_ms, tick in landed if tick is not None]


def _ticked(plan: Plan, until_ms: int) -> SimulatedTopic:
    """Let a ticker run over an empty topic."""
    topic = SimulatedTopic(plan)
    ticker = SimulatedTicker(plan, topic, Story())
    ticker.start(0)
    ticker.advance(until_ms)
    return topic


def test_a_ticker_writes_to_every_partition() -> None:
    """A tick an interval in each partition, with the run and its own age; a partition that is new gets some, too."""
    topic = _ticked(_plan(grown=(1_000, 3)), 1_999)
    assert [len(_ticks(topic, partition)) for partition in range(3)] == [10, 10, 5]
    assert {tick.run for _, tick in _ticks(topic, 0)} == {f"{2:08x}{0:08x}"}
    assert [tick.partitions for _, tick in _ticks(topic, 0)] == [2] * 5 + [3] * 5
    assert [tick.mono_ms for _, tick in _ticks(topic, 1)] == list(range(0, 2_000, 200))


def test_a_ticker_that_skips_a_partition_writes_to_the_others() -> None:
    """Trouble with one partition is trouble with that one; where ticks lag, one is on its way at a time."""
    topic = _ticked(_plan(troubles=(TickerFault(500, 1_500, 0, 0), TickerFault(500, 1_500, 1, 600))), 2_000)
    assert [at_ms for at_ms, _ in _ticks(topic, 0) if 500 <= at_ms < 1_500] == []
    assert [at_ms for at_ms, _ in _ticks(topic, 1) if 700 <= at_ms < 1_500] == [1_200]


def test_after_an_outage_the_tick_in_flight_lands_first() -> None:
    """Nothing lands while a partition cannot be written; what was sent meanwhile lands at its end."""
    plan = _plan(outages=(PlannedOutage(1_000, 3_000, 0),))
    topic = _ticked(plan, 3_999)
    assert topic.send(0, b"x", 4_000) - EPOCH_MS == 4_000
    landed = [at_ms for at_ms, _ in _ticks(topic, 0)]
    assert [at_ms for at_ms in landed if 1_004 < at_ms < 3_000] == []
    assert [at_ms for at_ms in landed if at_ms >= 3_000]
    assert max(tick.mono_ms for at_ms, tick in _ticks(topic, 0) if at_ms <= 3_000) <= 1_000
    assert len(_ticks(topic, 1)) == 20
    other = SimulatedTopic(plan)
    assert other.send(0, b"x", 2_000) - EPOCH_MS == 3_000
    assert other.ends_at(2_999) == {0: 0, 1: 0}
    assert other.ends_at(3_000) == {0: 1, 1: 0}


def test_an_open_transaction_hides_what_stands_behind_its_begin() -> None:
    """A committed read ends where a transaction began until that has ended; other partitions go on."""
    topic = SimulatedTopic(_plan(transactions=(PlannedOutage(1_000, 3_000, 0),)))
    for at_ms in (500, 1_500, 3_500):
        for partition in (0, 1):
            topic.send(partition, b"x", at_ms)
    assert [topic.ends_at(at_ms) for at_ms in (999, 1_500, 2_999, 3_000)] == [
        {0: 1, 1: 1},
        {0: 1, 1: 2},
        {0: 1, 1: 2},
        {0: 2, 1: 2},
    ]


def test_a_topic_keeps_the_order_of_true_time() -> None:
    """Offsets of a partition rise with true time."""
    plan = draw_plan(2)
    topic = feed(plan, Story()).topic
    end = topic.ends_at(plan.feed_ms)
    assert sum(end.values()) == sum(map(len, topic.partitions)) > 0
    for log in topic.partitions:
        times = [landed_ms for landed_ms, _ in log]
        assert times == sorted(times)
        assert [record.offset for _, record in log] == list(range(len(log)))


def test_a_batch_without_commit_begins_from_the_state_before_it() -> None:
    """What a lost attempt wrote as state is not what the next attempt reads; offsets and timestamp are the same."""
    checkpoint = Checkpoint({})
    checkpoint.plan({0: 3}, 1_000)
    checkpoint.put_state(0, StateRow(2, 1_000, -1, 1, 1, "lost"))
    assert checkpoint.unfinished
    assert checkpoint.state(0)[5] == ""
    checkpoint.put_state(0, StateRow(2, 1_000, -1, 1, 1, "kept"))
    checkpoint.commit()
    checkpoint.plan({0: 5, 1: 1}, 2_000)
    assert checkpoint.state(0)[5] == "kept"
    assert checkpoint.offsets[1] == ({0: 3}, {0: 5, 1: 1}, 2_000)


def test_a_plan_of_your_own() -> None:
    """A drawn plan may be changed: without crashes, stalls and second triggers nothing is written twice."""
    plan = dataclasses.replace(draw_plan(5), crash_rate=0.0, stall_rate=0.0)
    history = simulate_plan(plan)
    assert history.problems == []
    assert not [name for name in history.seen if name.startswith("crash") or name == "written again"]


def test_a_story_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`--seed` tells what members sent, what the job did and wrote, in the order of true time, and the judgement."""
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
    monkeypatch.setattr(advance, "topic_of", lambda _: None)
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
        assert "  batch" in out


def test_the_digest_of_rows_is_that_of_every_row_wherever_it_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same histories have the same digest in one process and in two; a row that says less has another one."""
    alone = survey(range(6), workers=0).rows
    assert survey(range(6), workers=2).rows == alone
    assert simulate(5).rows == (alone - survey(range(5), workers=0).rows) % (1 << 128)
    monkeypatch.setattr(advance, "topic_of", lambda _: None)
    assert survey(range(6), workers=0).rows != alone


@pytest.mark.parametrize("seed", [1899, 21488, 26338])
def test_the_checkers_know_what_the_engine_knows(seed: int) -> None:
    """A refused record tells the time all the same; what begins after each of two loads at one time is two things."""
    assert simulate(seed).problems == []


def test_a_process_that_was_replaced_may_tick_on_beside_the_next_one() -> None:
    """Two drivers tick for a while: each with its own run, then the new one alone."""
    topic = SimulatedTopic(plan := _plan(rival_rate=1.0))
    ticker = SimulatedTicker(plan, topic, Story())
    for true_ms in (0, 1_000):
        ticker.start(true_ms)
        ticker.stop(true_ms + 1_000) if not true_ms else ticker.advance(30_000)
    old, new = ticker.runs
    late = {tick.run for at_ms, tick in _ticks(topic, 0) if 1_100 < at_ms < 1_600}
    assert late == {old, new}
    assert {tick.run for at_ms, tick in _ticks(topic, 0) if at_ms > 25_000} == {new}


def test_ticks_may_be_copied() -> None:
    """Somebody copies ticks of any age into the partition that they are from, and writes false intervals into some."""
    ticks = [tick for _, tick in _ticks(_ticked(_plan(copy_rate=0.5), 10_000), 0)]
    found = [tick.mono_ms for tick in ticks]
    assert len(found) > len(set(found))
    assert {0, 1, 2**53 - 1} < {tick.interval_ms for tick in ticks}
