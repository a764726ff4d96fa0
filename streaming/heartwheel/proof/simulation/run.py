"""One history from a seed: members, job, faults, verdict of the checkers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from heartwheel.engine.time.outage import RESUME_MAX_MS
from heartwheel.proof.simulation.checkers.judge import HistoryJudge
from heartwheel.proof.simulation.checkers.problem import BrokenPromise
from heartwheel.proof.simulation.plan.draw import draw_plan
from heartwheel.proof.simulation.plan.parameters import Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.checkpoint import SinkRecord
from heartwheel.proof.simulation.world.job import SimulatedJob
from heartwheel.proof.simulation.world.population import feed
from heartwheel.proof.simulation.world.topic import SimulatedTopic

_LAST_TIMERS_MS = 8_000 + RESUME_MAX_MS
"""Longer than any timer that can still run when the last member has stopped, plus a gap before it, ms."""

_SETTLED_AFTER = 20
"""The number of triggers after which a job that defers verdicts must have written all of them."""


class SimulatedHistory(NamedTuple):
    """The outcome of a seed.

    Args:
        problems: the broken promises; empty if every promise held.
        seen: the number of occurrences, by name.
        lines: the lines of the story, if they were kept.
        rows: the digest of all rows that were written (`digest_of`).
    """

    seed: int
    problems: list[BrokenPromise]
    seen: Counter[str]
    lines: list[str]
    rows: int


def simulate(seed: int, *, keep_lines: bool = False) -> SimulatedHistory:
    """Simulate the history of a seed and judge it.

    Args:
        seed: the seed; it gives the same history on every machine.
    """
    return simulate_plan(draw_plan(seed), keep_lines=keep_lines)


def simulate_plan(plan: Plan, *, keep_lines: bool = False) -> SimulatedHistory:
    """Simulate the history of a plan and judge it.

    Args:
        plan: its parameters, for example `dataclasses.replace(draw_plan(seed), ...)`.
    """
    story = Story(keep_lines=keep_lines)
    topic, job = run_history(plan, story)
    judge = HistoryJudge(plan, topic, job.checkpoint, job.runs)
    problems = list(judge.problems())
    seen = story.seen + judge.seen() + _kinds_of(plan, topic, job)
    return SimulatedHistory(plan.seed, problems, seen, story.lines(), digest_of(plan.seed, job.checkpoint.sink))


def run_history(plan: Plan, story: Story) -> tuple[SimulatedTopic, SimulatedJob]:
    """Run a history to its end; return the topic and the job for the checkers."""
    topic = feed(plan, story).topic
    job = SimulatedJob(plan, topic, story)
    job.run()
    _finish(job, plan)
    return topic, job


def digest_of(seed: int, sink: Iterable[SinkRecord]) -> int:
    """Return a digest of all rows of a history, 128 bits; digests of histories are added up, modulo 2**128.

    A row counts with its topic, batch, attempt, shard and bytes, in the order of writing. So two versions of the engine
    whose digests are equal have written the same rows.
    """
    digest = hashlib.blake2b(str(seed).encode(), digest_size=16)
    for row in sink:
        digest.update(msgspec.json.encode(row))
    return int.from_bytes(digest.digest())


def _finish(job: SimulatedJob, plan: Plan) -> None:
    """Run the job until every timer has ended, even by the slowest broker's clock, and all rows are written."""
    behind_ms = max(-by for broker in plan.brokers for by in (0, broker.ahead_ms, *(by for _, by in broker.steps)))
    ends = [one.to_ms for one in plan.outages]
    ends += [one.to_ms for one in plan.transactions]
    ends += [one.to_ms for one in plan.troubles]
    ends += [one.to_ms for one in plan.untimed]
    hindered_ms = max(ends, default=0)
    wait_ms = _LAST_TIMERS_MS + 2 * behind_ms + max(0, hindered_ms - job.now_ms)
    job.finish(max(wait_ms, plan.relayed.until_ms - job.now_ms))
    for _ in range(_SETTLED_AFTER):
        if not job.defers():
            return
        job.trigger()


def _kinds_of(plan: Plan, topic: SimulatedTopic, job: SimulatedJob) -> Counter[str]:
    """Return which clocks, faults and other properties a history has."""
    seen: Counter[str] = Counter()
    driver = plan.driver
    steps = [by for _, by in driver.steps]
    seen["driver clock right"] = driver == type(driver)()
    seen["driver clock ahead"] = driver.ahead_ms > 0
    seen["driver clock behind"] = driver.ahead_ms < 0
    seen["driver clock drifts"] = driver.drift_ppm != 0
    seen["driver clock steps back"] = any(by < 0 for by in steps)
    seen["driver clock steps forward"] = any(by > 0 for by in steps)
    seen["broker clock drifts"] = plan.brokers[0].drift_ppm != 0
    seen["broker clock steps back"] = any(by < 0 for _, by in plan.brokers[0].steps)
    seen["broker clock steps forward"] = any(by > 0 for _, by in plan.brokers[0].steps)
    seen["broker clock jumps"] = any(by > plan.outage_min_ms for _, by in plan.brokers[0].steps)
    seen["leader with another clock"] = bool(plan.leader_changes)
    seen["topic grows"] = plan.grown is not None
    seen["transaction open"] = len(plan.transactions)
    seen["outage of a partition"] = sum(outage.partition >= 0 for outage in plan.outages)
    seen["outage of all"] = sum(outage.partition < 0 for outage in plan.outages)
    seen["ticker dead"] = sum(one.partition < 0 and not one.lag_ms for one in plan.troubles)
    seen["ticker lags"] = sum(one.lag_ms > 0 for one in plan.troubles)
    seen["ticker skips a partition"] = sum(one.partition >= 0 and not one.lag_ms for one in plan.troubles)
    seen["runs of the ticker"] = len(job.runs)
    seen["job starts at the end"] = plan.latest
    seen["append time steps back"] = sum(
        one.record.append_ms > two.record.append_ms >= 0 for log in topic.partitions for one, two in pairwise(log)
    )
    seen["record without append time"] = sum(one.record.append_ms < 0 for log in topic.partitions for one in log)
    return +seen
