"""What a canary has measured since it was started."""

from __future__ import annotations

import collections
from collections import Counter
from typing import Final

from heartwheel.base.percentiles import percentile
from heartwheel.readers.canary.judge import CanaryOutcome, JudgedOutcome
from heartwheel.readers.live.canary_figures import CanaryFigures, CanaryLateness

_LATENESSES_MAX: Final = 1_000


class OutcomeCounts:
    """Counts of outcomes; not safe for threads by itself."""

    def __init__(self) -> None:
        self.counts: Counter[CanaryOutcome] = Counter()
        self.void_reason: str | None = None
        self.last_ms: int | None = None
        self._latenesses: collections.deque[int] = collections.deque(maxlen=_LATENESSES_MAX)

    def add(self, judged: JudgedOutcome) -> None:
        """Count one."""
        self.counts[judged.outcome] += 1
        if judged.outcome is CanaryOutcome.VOID:
            self.void_reason = judged.reason
        if judged.outcome in {CanaryOutcome.IN_TIME, CanaryOutcome.LATE} and judged.lateness_ms is not None:
            self._latenesses.append(judged.lateness_ms)
            self.last_ms = max(self.last_ms or 0, judged.deadline_ms + judged.lateness_ms)

    def figures(
        self, *, enabled: bool, shards: int, pending: int, objective_ms: int, beats: int, unknown: int
    ) -> CanaryFigures:
        """Sum up.

        Args:
            enabled: whether the canary runs.
            pending: silences that wait for their expiration.
            objective_ms: how late an expiration should be at most, ms.
            beats: heartbeats sent.
            unknown: heartbeats without an answer.
        """
        counts = self.counts
        known = counts[CanaryOutcome.IN_TIME] + counts[CanaryOutcome.LATE]
        return CanaryFigures(
            enabled=enabled,
            shards=shards,
            expected=known + counts[CanaryOutcome.MISSED] + counts[CanaryOutcome.VOID] + pending,
            known=known,
            late=counts[CanaryOutcome.LATE],
            missed=counts[CanaryOutcome.MISSED],
            false_=counts[CanaryOutcome.FALSE],
            void=counts[CanaryOutcome.VOID],
            void_reason=self.void_reason,
            pending=pending,
            lateness_ms=self._lateness(),
            objective_ms=objective_ms,
            last_ms=self.last_ms,
            beats=beats,
            unknown=unknown,
        )

    def _lateness(self) -> CanaryLateness:
        ordered = sorted(self._latenesses)
        if not ordered:
            return CanaryLateness(p50=None, p99=None, max=None)
        return CanaryLateness(p50=percentile(ordered, 0.5), p99=percentile(ordered, 0.99), max=ordered[-1])
