"""What a metric is."""

from __future__ import annotations

import enum
from typing import NamedTuple


class MetricKind(enum.StrEnum):
    """The kind of a metric, which decides what Prometheus can compute from it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric.

    Args:
        name: as in a query; for a histogram without `_bucket`, `_sum` and `_count`.
        help: its meaning, in one sentence.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
