"""Read some of the output topics in a thread, over every absence of the brokers, without gap and double.

A lane keeps the next offset of each partition itself. Whatever breaks, it builds a new consumer and goes on there, so a
row is handed on once and in the order of its partition (tests/live/test_follower.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka.errors import KafkaError

from heartwheel.kafka.bounded import OversizedBatch, warn_of_oversized
from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaRefusedError, KafkaUnreachableError, reader
from heartwheel.live.partitions import FollowedPartitions
from heartwheel.live.topic_rows import Source, TopicRow, decode
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
        on_rows: called with rows in the order of their partition, never with none. What it raises ends the lane.
        on_link: called when the brokers answer and did not, or do not and did, and when the lane has failed.
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
        self._stopping, self._finishing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.linked: bool | None = None
        """Whether the brokers answered when they were last asked; `None` before the first time."""
        self.undecodable = 0
        """Values that were passed over."""
        self.failure: BaseException | None = None
        """What ended the lane, if something did."""

    @property
    def skipped(self) -> int:
        """Records that lay before the tail it began with, or were deleted before they could be read."""
        return self._partitions.skipped

    def start(self) -> None:
        """Begin to read, in a daemon thread."""
        self._thread = threading.Thread(target=self._run, name="heartwheel-follower", daemon=True)
        self._thread.start()

    def end(self, *, finish: bool) -> None:
        """Let it end: now, or when all that is in the topics by now has been read."""
        (self._finishing if finish else self._stopping).set()

    def join(self) -> None:
        """Wait until it has ended; harmless when it has not begun."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        failures = 0
        try:
            while not self._stopping.is_set():
                try:
                    self._follow()
                except _BROKEN as error:
                    _log.debug("following is interrupted: %s", error)
                    if self._finishing.is_set():
                        raise
                    # Two brokers may take turns in failing; only an answer to everything resets the patience.
                    failures = 0 if self.linked else failures + 1
                    self._link(linked=False)
                    self._stopping.wait(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
        except BaseException as error:  # noqa: BLE001 - a thread that ends in silence is the worst of all
            self.failure = error
            _log.exception("the follower of the topics has ended")
            # Whoever looks at all lanes has to hear of it, also if the brokers did not answer this one just before.
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
            while not self._stopping.is_set():
                now_s = time.monotonic()
                if now_s - looked_s >= _LOOK_EVERY_S:
                    self._partitions.look(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    looked_s = now_s
                if self._finishing.is_set():
                    ends = ends or self._partitions.ends(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    if self._partitions.reached(ends, consumer):
                        self._stopping.set()
                        return
                if self._poll(consumer):
                    probed_s = time.monotonic()
                    self._link(linked=True)
                elif now_s - probed_s >= _PROBE_EVERY_S:
                    # A consumer whose brokers are gone polls on in silence: only a question tells.
                    self._partitions.probe(consumer, timeout_ms=_PROBE_TIMEOUT_MS)
                    probed_s = time.monotonic()
                    self._link(linked=True)

    def _pass_over(self, batch: OversizedBatch) -> None:
        warn_of_oversized(batch)
        self.undecodable += batch.last_offset - batch.first_offset + 1

    def _poll(self, consumer: Any) -> bool:
        """Hand on what one poll brings; return whether it brought anything."""
        if not self._partitions.assigned:
            self._stopping.wait(_POLL_MS / 1000)
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

    def _decoded(self, source: Source, records: Sequence[Any]) -> list[TopicRow]:
        valued = [record for record in records if record.value is not None]
        rows = [each for record in valued if (each := decode(source, record)) is not None]
        self.undecodable += len(valued) - len(rows)
        return rows

    def _link(self, *, linked: bool) -> None:
        if linked is not self.linked:
            self.linked = linked
            self._on_link()
