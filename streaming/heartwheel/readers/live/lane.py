"""Read some of the output topics in a thread, through every absence of the brokers, without gaps and duplicates.

A lane keeps the next offset of each partition itself. After any failure it builds a new consumer and continues there,
so a row is delivered once and in the order of its partition (tests/live/test_follower.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka.errors import KafkaError

from heartwheel.base.worker import Worker
from heartwheel.kafka.bounded import OversizedBatch, warn_of_oversized
from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaRefusedError, KafkaUnreachableError, reader
from heartwheel.readers.live.partitions import FollowedPartitions
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow, decode
from heartwheel.settings import KafkaSettings

_log = logging.getLogger(__name__)

_POLL_MS: Final = 200
_PROBE_EVERY_S: Final = 2.0
_PROBE_TIMEOUT_MS: Final = 2_000
_LOOK_EVERY_S: Final = 2.0
_BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0)
_BROKEN: Final = (KafkaUnreachableError, KafkaRefusedError, KafkaError, OSError)


class Lane:
    """A reader of some topics, in a thread of its own.

    Args:
        kafka: where the brokers are.
        partitions: what to read, and from where on.
        on_rows: called with rows in the order of their partition, never with none. An exception from it ends the lane.
        on_link: called when the brokers begin or cease to answer, and when the lane has failed.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        partitions: FollowedPartitions,
        *,
        on_rows: Callable[[Sequence[TopicRow]], None],
        on_link: Callable[[], None],
    ) -> None:
        self._kafka, self._partitions = kafka, partitions
        self._on_rows, self._on_link = on_rows, on_link
        self._finishing = threading.Event()
        self._worker = Worker(self._run, "heartwheel-follower", on_failure=self._fail)
        self.linked: bool | None = None
        """Whether the brokers answered the last request; `None` before the first."""
        self.undecodable = 0
        """The number of values that were skipped."""

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended the lane, if one did."""
        return self._worker.failure

    @property
    def skipped(self) -> int:
        """The number of records that lay before the tail it began with, or were deleted before they could be read."""
        return self._partitions.skipped

    def start(self) -> None:
        """Start to read, in a daemon thread."""
        self._worker.start()

    def end(self, *, finish: bool) -> None:
        """End the lane: now, or when everything up to the present ends of the topics has been read."""
        if finish:
            self._finishing.set()
        else:
            self._worker.end()

    def join(self) -> None:
        """Wait until the thread has ended; does nothing if it has not started."""
        self._worker.join()

    def _run(self) -> None:
        failures = 0
        while not self._worker.stopping:
            try:
                self._follow()
            except _BROKEN as error:
                _log.debug("following is interrupted: %s", error)
                if self._finishing.is_set():
                    raise
                # Two brokers may fail in turns; only an answer of every broker resets the count.
                failures = 0 if self.linked else failures + 1
                self._link(linked=False)
                self._worker.wait(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])

    def _fail(self) -> None:
        """Report the failure, also if the brokers did not answer this lane just before: readers check all lanes."""
        self.linked = False
        self._on_link()

    def _follow(self) -> None:
        with reader(
            self._kafka.bootstrap_servers,
            self._kafka.client,
            doing="follow the topics",
            connect_timeout_ms=WATCHED_TIMEOUT_MS,
            on_oversized=self._pass_over,
        ) as consumer:
            looked_s = probed_s = float("-inf")
            ends: Mapping[Any, int] | None = None
            while not self._worker.stopping:
                now_s = time.monotonic()
                if now_s - looked_s >= _LOOK_EVERY_S:
                    self._partitions.refresh(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    looked_s = now_s
                if self._finishing.is_set():
                    ends = ends or self._partitions.ends(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    if self._partitions.reached(ends, consumer):
                        self._worker.end()
                        return
                if self._poll(consumer):
                    probed_s = time.monotonic()
                    self._link(linked=True)
                elif now_s - probed_s >= _PROBE_EVERY_S:
                    # A consumer without brokers polls on silently: only a request shows that.
                    self._partitions.probe(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    probed_s = time.monotonic()
                    self._link(linked=True)

    def _pass_over(self, batch: OversizedBatch) -> None:
        warn_of_oversized(batch)
        self.undecodable += batch.last_offset - batch.first_offset + 1

    def _poll(self, consumer: Any) -> bool:
        """Deliver the rows of one poll; return whether there were any."""
        if not self._partitions.assigned:
            self._worker.wait(_POLL_MS / 1000)
            return False
        found = consumer.poll(_POLL_MS)
        rows: list[TopicRow] = []
        for place, records in found.items():
            source = self._partitions.source_of(place)
            self._partitions.passed(place, records[-1].offset + 1)
            rows += self._decoded(source, records)
        if rows:
            self._on_rows(rows)
        return bool(found)

    def _decoded(self, source: OutputTopic, records: Sequence[Any]) -> list[TopicRow]:
        valued = [record for record in records if record.value is not None]
        rows = [each for record in valued if (each := decode(source, record)) is not None]
        self.undecodable += len(valued) - len(rows)
        return rows

    def _link(self, *, linked: bool) -> None:
        if linked is not self.linked:
            self.linked = linked
            self._on_link()
