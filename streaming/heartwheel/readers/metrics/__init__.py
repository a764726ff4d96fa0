"""The metrics of the job and of the dashboard, for Prometheus; docs/metrics.md describes each."""

from __future__ import annotations

from heartwheel.readers.metrics.exposition import Metrics
from heartwheel.readers.metrics.server import MetricsServer

__all__ = ["Metrics", "MetricsServer"]
