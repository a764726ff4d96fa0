"""The metrics of `heartwheel run`: of its own batches at first hand, of its verdicts as Kafka has them.

What the engine decides is not counted where it is decided but read back from the topics. Only there it is known when an
expiration was in Kafka, which is what its lateness means; each verdict counts once, however often a batch was repeated;
and the dashboard, which reads the same topics, tells the same numbers. It costs one consumer, in a thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from heartwheel.live.follower import Follower
from heartwheel.live.topic_rows import Source
from heartwheel.metrics.exposition import Metrics
from heartwheel.metrics.server import MetricsServer
from heartwheel.settings import Settings

_SOURCES: Final = (Source.EXPIRATIONS, Source.TRIGGERS, Source.STATUS)

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def job_metrics(settings: Settings) -> Iterator[Metrics]:
    """Serve metrics for the length of a `with` block, if the configuration names a port.

    Args:
        settings: the checked configuration.

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
