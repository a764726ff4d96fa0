"""The slope of a series of samples, with its noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


class Trend(NamedTuple):
    """Hold how fast something grows.

    Args:
        per_hour: slope of the straight line that fits best, units an hour.
        noise_per_hour: two standard errors of that slope, units an hour; infinite for fewer than three samples.
    """

    per_hour: float
    noise_per_hour: float

    def exceeds(self, bound_per_hour: float) -> bool:
        """Tell whether it surely grows faster than a bound: its noise alone does not explain it."""
        return self.per_hour - self.noise_per_hour > bound_per_hour

    def stays_below(self, bound_per_hour: float) -> bool:
        """Tell whether it surely grows no faster than a bound, whatever its noise hides."""
        return self.per_hour + self.noise_per_hour <= bound_per_hour


def trend_of(at_s: Sequence[float], values: Sequence[float], *, blocks: int = 20) -> Trend:
    """Fit a straight line.

    Neighbouring samples are alike, as a heap that has just been collected stays small for a while, so the error would
    look smaller than it is. The samples are taken together in blocks, and the line is fitted to the blocks' medians: a
    batch that something else on the machine held up is no growth.

    Args:
        at_s: when the samples were taken, ascending, seconds.
        blocks: most blocks that are made.
    """
    size = -(-len(values) // blocks) or 1
    cuts = range(0, len(values) - size + 1, size)
    x = [_mean(at_s[cut : cut + size]) / 3600 for cut in cuts]
    y = [median(values[cut : cut + size]) for cut in cuts]
    if len(x) < 3:
        return Trend(0.0, math.inf)
    x_mean, y_mean = _mean(x), _mean(y)
    spread = sum((a - x_mean) ** 2 for a in x)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread
    residual = sum((b - y_mean - slope * (a - x_mean)) ** 2 for a, b in zip(x, y, strict=True))
    return Trend(slope, 2 * math.sqrt(residual / (len(x) - 2) / spread))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
