"""Every metric: name, kind, labels and meaning.

Prometheus gets exactly the metrics listed here (tests/metrics). Tests compare docs/metrics.md, the alerts and the
Grafana dashboard with this list.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from heartwheel.readers.metrics.catalogue import canary, job, logs, shards, time, verdicts
from heartwheel.readers.metrics.metric import Metric


def _metrics_of(module: ModuleType) -> tuple[Metric, ...]:
    return tuple(each for each in vars(module).values() if isinstance(each, Metric))


LOGS: Final = "Brokers' logs"
"""The section of what only `heartwheel watch` tells."""

SECTIONS: Final = {
    "Verdicts": _metrics_of(verdicts),
    "Shards": _metrics_of(shards),
    "Job": _metrics_of(job),
    "Time": _metrics_of(time),
    "Canary": _metrics_of(canary),
    LOGS: _metrics_of(logs),
}
"""The metrics by subject."""

CATALOGUE: Final = tuple(metric for section in SECTIONS.values() for metric in section)
"""Every metric."""
