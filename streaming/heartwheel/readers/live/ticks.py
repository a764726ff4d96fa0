"""Figures in steps of a few seconds, for the charts and for the present rates."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from heartwheel.wire.job import BatchFigures

STEP_MS: Final = 5_000
"""Length of a step, ms."""

_WINDOW_MS_MAX: Final = 86_400_000

SAMPLES_MAX: Final = 500
"""Most latenesses that a step keeps: a fair sample of all, so that a storm of expirations is bounded too."""


class WheelStep:
    """One step."""

    __slots__ = ("batch_ms", "expirations", "lateness_ms", "records")

    def __init__(self) -> None:
        self.expirations = 0
        self.lateness_ms: Sequence[int] = ()
        self.records: int | None = None
        self.batch_ms: int | None = None


class Ticks:
    """The steps of a stretch of time.

    Args:
        window_ms: its length, ms; of more than a day, as a broker's log may have, the steps of a day are kept.
    """

    def __init__(self, window_ms: int) -> None:
        self._ticks_max = max(1, min(window_ms, _WINDOW_MS_MAX) // STEP_MS) + 2
        self._ticks: OrderedDict[int, WheelStep] = OrderedDict()
        self._random = random.Random(0)  # noqa: S311 - draws samples, guards nothing

    def add_expiration(self, append_ms: int, known_late_ms: int | None) -> None:
        """Count an expiration, and how late it was known, if that is known."""
        tick = self._at(append_ms)
        tick.expirations += 1
        if known_late_ms is None:
            return
        if not isinstance(tick.lateness_ms, list):  # a day has many steps, and those of a log have no lateness
            tick.lateness_ms = []
        if len(tick.lateness_ms) < SAMPLES_MAX:
            tick.lateness_ms.append(known_late_ms)
        elif (place := self._random.randrange(tick.expirations)) < SAMPLES_MAX:
            tick.lateness_ms[place] = known_late_ms

    def add_records(self, at_ms: int, records: int) -> None:
        """Count records that were read."""
        tick = self._at(at_ms)
        tick.records = (tick.records or 0) + records

    def add_batch(self, batch: BatchFigures) -> None:
        """Note how long a batch took; the longest of a step counts."""
        tick = self._at(batch.ended_ms)
        tick.batch_ms = max(tick.batch_ms or 0, batch.duration_ms)

    def steps(self, from_ms: int, to_ms: int) -> Sequence[tuple[int, WheelStep]]:
        """Return the steps that were seen and begin in `from_ms <= t < to_ms`."""
        return [(at_ms, tick) for at_ms, tick in self._ticks.items() if from_ms <= at_ms < to_ms]

    def _at(self, time_ms: int) -> WheelStep:
        start_ms = time_ms - time_ms % STEP_MS
        tick = self._ticks.get(start_ms)
        if tick is None:
            tick = self._ticks[start_ms] = WheelStep()
            while len(self._ticks) > self._ticks_max or next(iter(self._ticks)) < start_ms - _WINDOW_MS_MAX:
                self._ticks.popitem(last=False)  # of a log, the steps with something in them may be days apart
        return tick
