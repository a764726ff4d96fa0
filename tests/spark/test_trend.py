"""The soak's arithmetic: growth is found, noise is not taken for growth."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.soak import SERIES, judge, verdict
from support.trend import Trend, trend_of

AT_S = [float(second) for second in range(0, 1_800, 2)]


def test_a_straight_line_has_its_slope_and_no_noise() -> None:
    """A megabyte a minute is sixty an hour."""
    trend = trend_of(AT_S, [second / 60 for second in AT_S])
    assert trend.per_hour == pytest.approx(60)
    assert trend.noise_per_hour == pytest.approx(0, abs=1e-6)
    assert trend.exceeds(59)
    assert not trend.exceeds(61)
    assert trend.stays_below(61)
    assert not trend.stays_below(59)


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_below_a_saw_tooth_is_found(seed: int) -> None:
    """A heap that is filled and collected hides a leak from a glance, not from the fit; without one there is none."""
    noise = random.Random(seed)
    saw = [second % 40 * 5 + noise.gauss(0, 20) for second in AT_S]
    assert not trend_of(AT_S, saw).exceeds(30)
    assert trend_of(AT_S, [value + second / 10 for second, value in zip(AT_S, saw, strict=True)]).exceeds(30)


def test_too_few_samples_decide_nothing() -> None:
    """Two points make a line, and say nothing of its noise."""
    assert trend_of([0, 1], [0, 1_000]) == Trend(0.0, math.inf)
    assert trend_of([], []) == Trend(0.0, math.inf)
    assert not Trend(0.0, math.inf).stays_below(1_000)


def test_a_series_that_was_never_seen_is_no_pass() -> None:
    """A process that is looked for under a name of the past has no memory at all, and does not grow."""
    values = {series.name: [(at, 5.0) for at in AT_S] for series in SERIES}
    assert {verdict(row) for row in judge(values, minutes=30)} == {"bounded"}
    unseen, empty = SERIES[2].name, SERIES[3].name
    rows = judge(values | {unseen: [(at, 0.0) for at in AT_S], empty: []}, minutes=30)
    assert [row["series"] for row in rows if not row["ok"]] == [unseen, empty]
    assert [verdict(row) for row in rows].count("NOT MEASURED") == 2
