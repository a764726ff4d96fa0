"""Counters of the engine's verdicts, from the topics of expirations and triggers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from prometheus_client import CollectorRegistry

from heartwheel.readers.live.picture import CANARY_PREFIX
from heartwheel.readers.live.seen import Seen
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.metrics.catalogue import verdicts as about_verdicts
from heartwheel.readers.metrics.families import counter, histogram
from heartwheel.readers.metrics.groups import GroupLabels
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from heartwheel.wire.verdicts import ENGINE_REASONS, TRIGGER_TYPES, Cause, Kind

LATENESS_BUCKETS_S: Final = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 300.0)
"""Upper bounds of latenesses, seconds; the objective is one more, so that expirations in time are counted exactly."""

REBALANCE_BUCKETS_S: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the durations of join phases, seconds; Kafka's default for the longest is 300 s."""

_IDS_MAX: Final = 50_000
"""How many verdicts are certain to be known again: a job that was killed writes those of a batch once more."""


def lateness_buckets(objective_ms: int) -> list[float]:
    """Return the upper bounds of latenesses.

    Args:
        objective_ms: how late an expiration should be known at most, ms.
    """
    return sorted({*LATENESS_BUCKETS_S, objective_ms / 1000})


class VerdictCounters:
    """Counters of verdicts, each once by its id, those about the canary's members left out.

    Args:
        groups_max: groups that get a label of their own.
        objective_ms: how late an expiration should be known at most, ms; `None` for verdicts of brokers' logs, which do
            not show how late they were known.
        canary_prefix: the prefix of the canary's group ids.
        since_ms: verdicts that were appended before are not counted, epoch ms.
        ids_max: how many verdicts are certain to be known again.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        groups_max: int,
        objective_ms: int | None,
        canary_prefix: str = CANARY_PREFIX,
        since_ms: int = 0,
        ids_max: int = _IDS_MAX,
    ) -> None:
        self._canary_prefix, self._since_ms = canary_prefix, since_ms
        self._labels = GroupLabels(groups_max)
        self._seen = Seen(ids_max)
        self._expirations = counter(about_verdicts.EXPIRATIONS, registry, values=ENGINE_REASONS)
        self._group_expirations = counter(about_verdicts.GROUP_EXPIRATIONS, registry)
        self._lateness = (
            None
            if objective_ms is None
            else histogram(about_verdicts.LATENESS, registry, buckets=lateness_buckets(objective_ms))
        )
        self._rebalances = counter(about_verdicts.REBALANCES, registry, values=Cause)
        self._group_rebalances = counter(about_verdicts.GROUP_REBALANCES, registry)
        self._group_seconds = counter(about_verdicts.GROUP_REBALANCE_SECONDS, registry)
        self._durations = histogram(about_verdicts.REBALANCE_DURATION, registry, buckets=REBALANCE_BUCKETS_S)

    def apply(self, rows: Sequence[TopicRow]) -> None:
        """Count new verdicts in rows of the topics; other rows are ignored."""
        # Counted here first: a counter of the library takes a lock each time, and rows may come in great numbers.
        reasons, groups = Counter[str](), Counter[str]()
        for each in rows:
            row = each.row
            if not isinstance(row, ExpirationRow | TriggerRow) or row.group_id.startswith(self._canary_prefix):
                continue
            if each.append_ms >= self._since_ms and self._seen.is_new(row.id):
                if isinstance(row, ExpirationRow):
                    reasons[row.reason] += 1
                    groups[row.group_id] += 1
                    if self._lateness is not None:
                        self._lateness.observe(max(0, each.append_ms - row.deadline_ms) / 1000)
                else:
                    self._triggered(row)
        for reason, count in reasons.items():
            self._expirations.labels(reason).inc(count)
        for group_id, count in groups.items():
            self._group_expirations.labels(self._labels[group_id]).inc(count)

    def _triggered(self, row: TriggerRow) -> None:
        if not row.is_rebalance:
            return  # a worker came to or left a presence group, and no member had to join again
        if row.type == TRIGGER_TYPES[Kind.REBALANCE_STARTED]:
            self._rebalances.labels(row.cause or "").inc()
            self._group_rebalances.labels(self._labels[row.group_id]).inc()
        elif row.type == TRIGGER_TYPES[Kind.REBALANCE_COMPLETED] and row.duration_ms is not None:
            self._durations.observe(row.duration_ms / 1000)
            self._group_seconds.labels(self._labels[row.group_id]).inc(row.duration_ms / 1000)
