"""What Prometheus reads, of the job and of the dashboard; docs/metrics.md describes each metric."""

from __future__ import annotations

from heartwheel.metrics.exposition import Metrics
from heartwheel.metrics.server import MetricsServer

__all__ = ["Metrics", "MetricsServer"]
