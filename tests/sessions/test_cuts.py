"""Random events, random cuts and restarts: the shards say what the oracle says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.oracle import Oracle, Seen
from sessions.running import Shards, config_of, frame_of, plain

BATCH_MS = 10**9
"""Later than all events: no event is of the future."""

# Often to the millisecond at a deadline, or where a key is forgotten.
times = st.integers(1_000, 8_000) | st.integers(2, 16).map(lambda halves: 500 * halves)
seen = st.builds(
    Seen,
    times,
    st.sampled_from("abcdef"),
    st.sampled_from([None, None, None, "bye", "shutdown"]),
    st.integers(0, 2),
    st.sampled_from([500, 1_000, 2_500]),
    st.just(0),
)


def _distinct(events: Sequence[Seen]) -> list[Seen]:
    """Leave out what says two things of one key at one time: the order of those is nobody's business."""
    return list({(each.key, each.time_ms): each for each in events}.values())


def _cut(events: Sequence[Seen], dice: random.Random) -> list[list[Seen]]:
    batches: list[list[Seen]] = [[]]
    for event in events:
        if dice.random() < 0.3:
            batches.append([])
        batches[-1].append(event)
    return [batch for batch in batches if batch]


def _frames(batch: Sequence[Seen], dice: random.Random) -> list[Any]:
    cut = dice.randrange(len(batch) + 1)
    return [frame_of(part) for part in (batch[:cut], batch[cut:]) if part]


@settings(max_examples=60, deadline=None)
@given(st.lists(seen, min_size=1, max_size=40), st.integers(1, 4), st.randoms(use_true_random=False))
@pytest.mark.parametrize("forget_ms", [10**12, 1_500])
@pytest.mark.parametrize("timeout_ms", [1_000, None])
def test_rows_are_those_of_the_oracle_however_the_source_is_cut(
    forget_ms: int, timeout_ms: int | None, events: list[Seen], shards: int, dice: random.Random
) -> None:
    """In one partition whose times ascend, cuts, shards, packs and restarts change no row."""
    if timeout_ms is not None:
        events = [each._replace(timeout_ms=timeout_ms) for each in events]
    events = sorted(_distinct(events))
    newest = events[-1].time_ms
    oracle = Oracle(forget_ms=forget_ms)
    oracle.apply(events, newest)
    runner = Shards(config_of(shards, timeout_ms=timeout_ms, forget_ms=forget_ms), dice)
    rows = [row for batch in _cut(events, dice) for row in runner.batch(_frames(batch, dice), BATCH_MS)]
    assert plain(rows) == sorted(oracle.rows, key=repr)
    assert len({row["id"] for row in rows}) == len(rows)
    assert runner.figures[-1]["alive"] == sum(key.over is None for key in oracle.keys.values())
    assert runner.figures[-1]["closed"] == sum(key.over is not None for key in oracle.keys.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(seen, min_size=1, max_size=40), st.integers(1, 3), st.randoms(use_true_random=False))
def test_events_of_several_partitions_wait_for_the_slowest(
    events: list[Seen], shards: int, dice: random.Random
) -> None:
    """Partitions are read at different speeds: each event is applied once nothing unread can come before it."""
    events = [each._replace(partition=ord(each.key) % 2) for each in sorted(_distinct(events))]
    lanes = [[each for each in events if each.partition == part] for part in (0, 1)]
    runner = Shards(config_of(shards), dice)
    # Both partitions are known from the first batch on: one that nobody has heard of holds back nothing.
    begins = [Seen(0, name, partition=part) for part, name in enumerate("xy")]
    rows = runner.batch([frame_of(begins)], BATCH_MS)
    while any(lanes):
        lane = dice.choice([lane for lane in lanes if lane])
        taken = dice.randrange(len(lane)) + 1
        rows += runner.batch([frame_of(lane[:taken])], BATCH_MS)
        del lane[:taken]
    newest = [max((each.time_ms for each in events if each.partition == part), default=0) for part in (0, 1)]
    oracle = Oracle()
    oracle.apply([*begins, *(each for each in events if each.time_ms <= min(newest))], min(newest))
    assert plain(rows) == sorted(oracle.rows, key=repr)
    assert runner.figures[-1]["waiting"] == sum(each.time_ms > min(newest) for each in events)


@settings(max_examples=60, deadline=None)
@given(st.lists(seen, min_size=1, max_size=30), st.integers(1, 3), st.randoms(use_true_random=False))
def test_outages_renew_sessions(events: list[Seen], shards: int, dice: random.Random) -> None:
    """A silence of all keys of the length of an outage ends no session that did not end before it."""
    events = sorted(_distinct([each._replace(ends=None) for each in events]))
    oracle = Oracle(outage_ms=700)
    oracle.apply(events, events[-1].time_ms)
    runner = Shards(config_of(shards, outage_ms=700), dice)
    rows = [row for batch in _cut(events, dice) for row in runner.batch(_frames(batch, dice), BATCH_MS)]
    assert plain(rows) == sorted(oracle.rows, key=repr)


@settings(max_examples=60, deadline=None)
@given(st.lists(seen, min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_late_events_are_those_of_the_oracle(events: list[Seen], dice: random.Random) -> None:
    """In any order: what is older than the clock counts as the page says, batch by batch."""
    events = _distinct(events)
    oracle, runner = Oracle(), Shards(config_of(), dice)
    rows, now_ms, late = [], 0, 0
    for batch in _cut(events, dice):
        late += sum(each.time_ms <= now_ms for each in batch)
        now_ms = max(now_ms, *(each.time_ms for each in batch))
        oracle.apply(batch, now_ms)
        rows += runner.batch(_frames(batch, dice), BATCH_MS)
    assert plain(rows) == sorted(oracle.rows, key=repr)
    assert sum(figures.get("late", 0) for figures in runner.figures) == late


def test_a_repeated_batch_gives_the_same_bytes() -> None:
    """A batch that runs again, with its packs in another order, writes the same rows with the same ids."""
    dice = random.Random(3)
    first = [Seen(dice.randrange(1_000, 3_000), dice.choice("abcdef"), carry=dice.randrange(3)) for _ in range(50)]
    then = [Seen(dice.randrange(2_000, 9_000), dice.choice("abcdefghij"), carry=dice.randrange(3)) for _ in range(200)]
    runner = Shards(config_of(2))
    runner.batch([frame_of(first)], BATCH_MS)
    states = dict(runner.states)
    cut = [frame_of(then[at : at + 20]) for at in range(0, len(then), 20)]
    once, after = runner.batch(cut, BATCH_MS), dict(runner.states)
    for seed in range(5):
        again = Shards(config_of(2), random.Random(seed))
        again.states = dict(states)
        assert again.batch(cut, BATCH_MS) == once
        assert again.states == after
