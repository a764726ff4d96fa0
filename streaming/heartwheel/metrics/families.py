"""Make what `prometheus_client` knows of what the catalogue says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from heartwheel.metrics.catalogue import Kind, Metric


def counter(metric: Metric, registry: CollectorRegistry, *, values: Iterable[str] = ()) -> Counter:
    """Make a counter that is counted up.

    Args:
        metric: of the catalogue.
        registry: where the metrics are registered.
        values: values of its one label that stand at 0 before anything happens, for an increase from nothing to one is
            no increase to Prometheus.
    """
    made = Counter(metric.name, metric.help, metric.labels, registry=registry)
    for value in values:
        made.labels(value)
    return made


def histogram(metric: Metric, registry: CollectorRegistry, *, buckets: Sequence[float]) -> Histogram:
    """Make a histogram.

    Args:
        metric: of the catalogue.
        registry: where the metrics are registered.
        buckets: upper bounds, seconds.
    """
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=buckets)


def family(metric: Metric, values: Mapping[str, float] | Mapping[tuple[str, str], float] | float) -> Family:
    """Make the family of a figure that is looked up when Prometheus asks.

    Args:
        metric: of the catalogue.
        values: the figure, by the value of its label, or of its labels in their order, if it has any.
    """
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.help, labels=metric.labels)
    pairs = values.items() if isinstance(values, Mapping) else [(None, values)]
    for label, value in pairs:
        made.add_metric([] if label is None else [label] if isinstance(label, str) else label, value)
    return made
