"""Metrics of a canary."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.canary.judge import CanaryOutcome, JudgedOutcome
from heartwheel.readers.canary.plan import Probe
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.readers.metrics.catalogue import canary as about_canary
from heartwheel.readers.metrics.families import counter, family, histogram
from heartwheel.readers.metrics.verdicts import lateness_buckets


class CanaryCollector(Collector):
    """Counters of a canary's outcomes, and its other figures at the time of the request.

    Args:
        objective_ms: how late an expiration should be known at most, ms.
    """

    def __init__(self, registry: CollectorRegistry, *, objective_ms: int) -> None:
        self._figures: Callable[[], CanaryFigures] | None = None
        self._probes = counter(about_canary.CANARY_PROBES, registry, values=CanaryOutcome)
        self._lateness = histogram(about_canary.CANARY_LATENESS, registry, buckets=lateness_buckets(objective_ms))
        registry.register(self)

    def watch(self, figures: Callable[[], CanaryFigures]) -> None:
        """Set the source of the figures.

        Args:
            figures: `Canary.figures`.
        """
        self._figures = figures

    def on_judged(self, _probe: Probe, judged: JudgedOutcome) -> None:
        """Count an outcome; registered with the canary."""
        self._probes.labels(judged.outcome.value).inc()
        if judged.outcome in {CanaryOutcome.IN_TIME, CanaryOutcome.LATE} and judged.lateness_ms is not None:
            self._lateness.observe(max(0, judged.lateness_ms) / 1000)

    def collect(self) -> Iterable[Family]:
        """Return the figures for `prometheus_client`; none while no canary is watched."""
        if self._figures is not None:
            figures = self._figures()
            yield family(about_canary.CANARY_PENDING, figures.pending)
            yield family(about_canary.CANARY_HEARTBEATS, figures.beats)
            yield family(about_canary.CANARY_UNANSWERED, figures.unknown)
