"""The metrics of `heartwheel run`: of its own batches directly, and of its verdicts as they are in Kafka.

Verdicts are not counted where the engine decides them but are read back from the topics, for three reasons. Only there
it is known when an expiration was in Kafka, which defines its lateness. Each verdict counts once, however often a batch
was repeated. And the dashboard, which reads the same topics, has the same numbers. The cost is one consumer, in a
thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from heartwheel.readers.live.follower import Follower
from heartwheel.readers.live.topic_rows import OutputTopic
from heartwheel.readers.metrics.exposition import Metrics
from heartwheel.readers.metrics.server import MetricsServer
from heartwheel.settings import Settings

_SOURCES: Final = (OutputTopic.EXPIRATIONS, OutputTopic.TRIGGERS, OutputTopic.STATUS)

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def job_metrics(settings: Settings) -> Iterator[Metrics]:
    """Serve metrics for the length of a `with` block, if the configuration names a port.

    Raises:
        HeartwheelError: the address cannot be listened at.
    """
    metrics, wanted = Metrics(settings, memory=True), settings.metrics
    if not wanted.port:
        yield metrics
        return
    follower = Follower(settings, sources=_SOURCES, on_rows=metrics.apply, on_link=metrics.link)
    with MetricsServer(metrics, wanted.host, wanted.port, wanted.token) as server, follower:
        _log.info("metrics at %s", server.address)
        yield metrics
