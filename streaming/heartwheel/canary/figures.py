"""What a canary has measured since it was started."""

from __future__ import annotations

import collections
from collections import Counter
from typing import Final

import msgspec

from heartwheel.canary.judge import Judged, Outcome
from heartwheel.live.figures import percentile

_LATENESSES_MAX: Final = 1_000


class CanaryLateness(msgspec.Struct, frozen=True, kw_only=True):
    """Hold how long after their deadlines the newest expirations were in Kafka, ms; `None` before the first.

    Args:
        p50: median.
        p99: 99th percentile.
        max: the longest.
    """

    p50: int | None
    p99: int | None
    max: int | None


class CanaryFigures(msgspec.Struct, frozen=True, kw_only=True, rename={"false_": "false"}):
    """Hold what a canary has measured; `expected` is the sum of `known`, `missed`, `void` and `pending`.

    Args:
        enabled: whether it runs.
        shards: how many shards it tries.
        expected: silences that had to end in an expiration.
        known: those whose expiration came, in time or late.
        late: those of them that came later than the objective.
        missed: those whose expiration was not known in time, or never.
        false_: expirations of members that were alive.
        void: silences of which nothing can be said, as Kafka was away or did not answer.
        void_reason: why, of the newest such silence.
        pending: silences whose expiration may still come in time.
        lateness_ms: how late the newest ones were known.
        objective_ms: how late they should be at most.
        last_ms: when the newest expiration was appended, epoch ms; `None` before the first.
        beats: heartbeats sent.
        unknown: heartbeats that the broker did not answer for.
    """

    enabled: bool
    shards: int
    expected: int
    known: int
    late: int
    missed: int
    false_: int
    void: int
    void_reason: str | None
    pending: int
    lateness_ms: CanaryLateness
    objective_ms: int
    last_ms: int | None
    beats: int
    unknown: int


class Outcomes:
    """Count outcomes; not safe for threads by itself."""

    def __init__(self) -> None:
        self.counts: Counter[Outcome] = Counter()
        self.void_reason: str | None = None
        self.last_ms: int | None = None
        self._latenesses: collections.deque[int] = collections.deque(maxlen=_LATENESSES_MAX)

    def add(self, judged: Judged) -> None:
        """Count one."""
        self.counts[judged.outcome] += 1
        if judged.outcome is Outcome.VOID:
            self.void_reason = judged.reason
        if judged.outcome in {Outcome.IN_TIME, Outcome.LATE} and judged.lateness_ms is not None:
            self._latenesses.append(judged.lateness_ms)
            self.last_ms = max(self.last_ms or 0, judged.deadline_ms + judged.lateness_ms)

    def figures(
        self, *, enabled: bool, shards: int, pending: int, objective_ms: int, beats: int, unknown: int
    ) -> CanaryFigures:
        """Sum up.

        Args:
            enabled: whether the canary runs.
            shards: how many shards it tries.
            pending: silences that wait for their expiration.
            objective_ms: how late an expiration should be at most, ms.
            beats: heartbeats sent.
            unknown: heartbeats without an answer.
        """
        counts = self.counts
        known = counts[Outcome.IN_TIME] + counts[Outcome.LATE]
        return CanaryFigures(
            enabled=enabled,
            shards=shards,
            expected=known + counts[Outcome.MISSED] + counts[Outcome.VOID] + pending,
            known=known,
            late=counts[Outcome.LATE],
            missed=counts[Outcome.MISSED],
            false_=counts[Outcome.FALSE],
            void=counts[Outcome.VOID],
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
