"""The metrics of `heartwheel watch`: the verdicts of brokers' logs under the job's names, and how the logs are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.live.trouble import GroupsInTrouble
from heartwheel.readers.metrics.catalogue import logs as about_logs
from heartwheel.readers.metrics.families import counter, family
from heartwheel.readers.metrics.groups import GroupLabels
from heartwheel.readers.metrics.trouble_collector import TroubleCollector
from heartwheel.readers.metrics.verdicts import VerdictCounters
from heartwheel.settings import Settings


class LogFigures(NamedTuple):
    """How logs are read, at the moment that Prometheus asks.

    Args:
        lines: that were read.
        coordinator_lines: of group coordinators.
        ignored: lines that were left out, by reason.
        lost: how often a file was gone before it was read.
        behind_bytes: not read yet.
        newest_ms: the newest time of a coordinator's line, epoch ms; `None` before the first.
        history_bytes: size of the history's file.
    """

    lines: int
    coordinator_lines: int
    ignored: dict[str, int]
    lost: int
    behind_bytes: int
    newest_ms: int | None
    history_bytes: int


class LogMetrics:
    """The metrics of a watcher, in a registry of their own; one thread may feed them while another reads the text.

    Args:
        settings: the checked configuration.
        figures: returns how the logs are read, from any thread.
        troubles: returns the groups in trouble, from any thread.
    """

    def __init__(
        self, settings: Settings, *, figures: Callable[[], LogFigures], troubles: Callable[[], GroupsInTrouble]
    ) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's omission
        self._registry = CollectorRegistry()
        groups_max = settings.metrics.groups_max
        # Verdicts of a log come once, each with its event, so none has to be known again.
        self._verdicts = VerdictCounters(self._registry, groups_max=groups_max, objective_ms=None, ids_max=0)
        self._storms = counter(about_logs.STORMS, self._registry)
        self._labels = GroupLabels(groups_max)
        self._registry.register(_LogCollector(figures))
        self._registry.register(TroubleCollector(troubles))
        prometheus_client.ProcessCollector(registry=self._registry)

    def apply(self, rows: Sequence[TopicRow], storms: Iterable[str]) -> None:
        """Count news of the logs.

        Args:
            rows: of expirations and rebalances.
            storms: the groups in which a storm began.
        """
        self._verdicts.apply(rows)
        for group_id in storms:
            self._storms.labels(self._labels[group_id]).inc()

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the text of all metrics in a format that the reader accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class _LogCollector(Collector):
    def __init__(self, figures: Callable[[], LogFigures]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        figures = self._figures()
        yield family(about_logs.LINES, figures.lines)
        yield family(about_logs.COORDINATOR_LINES, figures.coordinator_lines)
        yield family(about_logs.IGNORED, figures.ignored)
        yield family(about_logs.LOST, figures.lost)
        yield family(about_logs.BEHIND, figures.behind_bytes)
        yield family(about_logs.HISTORY_BYTES, figures.history_bytes)
        if figures.newest_ms is not None:
            yield family(about_logs.NEWEST, figures.newest_ms / 1000)
