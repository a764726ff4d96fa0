"""All metrics of a process in one place: their inputs, and the text for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.readers.live.trouble import GroupsInTrouble
from heartwheel.readers.metrics.canary_collector import CanaryCollector
from heartwheel.readers.metrics.catalogue import job as about_job
from heartwheel.readers.metrics.engine_collector import EngineCollector
from heartwheel.readers.metrics.families import family
from heartwheel.readers.metrics.job_collector import JobCollector
from heartwheel.readers.metrics.memory import MemoryCollector
from heartwheel.readers.metrics.trouble_collector import TroubleCollector
from heartwheel.readers.metrics.verdicts import VerdictCounters
from heartwheel.settings import Settings
from heartwheel.settings.objective import lateness_objective_ms
from heartwheel.wire.job import JobRow

PLAIN: Final = "text/plain"
"""The format for a reader that names none."""


class Metrics:
    """The metrics of one process, in a registry of their own.

    One thread may feed them while another reads the text.

    Args:
        memory: whether to include the memory of this process and its children.
        since_ms: verdicts that were appended before are not counted, epoch ms; `None` counts from now on, because older
            verdicts would look like a burst.
    """

    def __init__(self, settings: Settings, *, memory: bool = False, since_ms: int | None = None) -> None:
        # The creation time of a series would be one more series for each.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's omission
        self.registry = CollectorRegistry()
        objective_ms = lateness_objective_ms(settings)
        self._verdicts = VerdictCounters(
            self.registry,
            groups_max=settings.metrics.groups_max,
            objective_ms=objective_ms,
            canary_prefix=settings.canary.group_prefix,
            since_ms=wall_ms() if since_ms is None else since_ms,
        )
        self._engine = EngineCollector(settings.engine.shards)
        self.registry.register(self._engine)
        self._job = JobCollector(self.registry)
        self._link = _LinkCollector()
        self.registry.register(self._link)
        self.canary = CanaryCollector(self.registry, objective_ms=objective_ms)
        """Registered with a canary of this process."""
        prometheus_client.ProcessCollector(registry=self.registry)
        if memory:
            self.registry.register(MemoryCollector())

    def apply(self, rows: Sequence[TopicRow]) -> None:
        """Apply rows of the topics, as a follower delivers them."""
        self._verdicts.apply(rows)
        self._engine.apply(rows)
        for each in rows:
            if isinstance(each.row, JobRow):
                self.take_job(each.row)

    def take_job(self, row: JobRow) -> None:
        """Apply a row of the job, from the topic or from the job itself."""
        self._job.take(row)
        self._engine.shards = row.shards

    def link(self, linked: bool) -> None:  # noqa: FBT001 - its one argument
        """Note whether the brokers answer.

        Args:
            linked: whether they do.
        """
        self._link.linked = linked

    def watch_groups(self, find: Callable[[], GroupsInTrouble]) -> None:
        """Export the groups in trouble.

        Args:
            find: returns them, from any thread.
        """
        self.registry.register(TroubleCollector(find))

    def text(self, accept: str = PLAIN) -> tuple[bytes, str]:
        """Return the text of all metrics.

        Args:
            accept: the formats that the reader accepts, its header `Accept`.

        Returns:
            The text and its content type.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


class _LinkCollector(Collector):
    def __init__(self) -> None:
        self.linked: bool | None = None

    def collect(self) -> Iterable[Family]:
        if self.linked is not None:
            yield family(about_job.KAFKA_UP, self.linked)
