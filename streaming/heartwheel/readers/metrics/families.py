"""Make the objects of `prometheus_client` for metrics of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from heartwheel.readers.metrics.metric import Metric, MetricKind


def counter(metric: Metric, registry: CollectorRegistry, *, values: Iterable[str] = ()) -> Counter:
    """Return a counter that is incremented.

    Args:
        values: values of its one label that start at 0, because Prometheus does not see an increase from nothing to
            one.
    """
    made = Counter(metric.name, metric.help, metric.labels, registry=registry)
    for value in values:
        made.labels(value)
    return made


def histogram(metric: Metric, registry: CollectorRegistry, *, buckets: Sequence[float]) -> Histogram:
    """Return a histogram.

    Args:
        buckets: upper bounds, seconds.
    """
    return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=buckets)


def family(metric: Metric, values: Mapping[str, float] | Mapping[tuple[str, str], float] | float) -> Family:
    """Return the family of a figure that is computed when Prometheus asks.

    Args:
        values: the figure, by the value of its label, or of its labels in their order, if it has any.
    """
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    made = kind(metric.name, metric.help, labels=metric.labels)
    pairs = values.items() if isinstance(values, Mapping) else [(None, values)]
    for label, value in pairs:
        made.add_metric([] if label is None else [label] if isinstance(label, str) else label, value)
    return made
