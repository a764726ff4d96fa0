"""Publish records to Kafka from a thread of its own, and count for each request what Kafka has acknowledged."""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections.abc import Callable, Sequence
from typing import Final, Self

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.worker import Worker
from heartwheel.kafka.bulk import BulkSender
from heartwheel.sources.gateway.requests import BeatRecord

_LOOK_S: Final = 0.001
_RETRY_S: Final = 1.0
_TAKEN_MAX: Final = 1_000

_log = logging.getLogger(__name__)


class PublishedRequest:
    """The records of one request, and what Kafka answered.

    Args:
        finished: called in the publisher's thread when the outcome of every record is known.
    """

    def __init__(self, records: Sequence[BeatRecord], finished: Callable[[PublishedRequest], None]) -> None:
        self.records = records
        self.acknowledged, self.unknown = 0, 0
        self.given_up = False
        """Set when the client no longer waits; records that are not on their way yet are then not sent."""
        self._finished = finished

    def note(self, error: object, _: object = None) -> None:
        """Note the outcome of one record: acknowledged, unless there is an error."""
        if error is None:
            self.acknowledged += 1
        else:
            self.unknown += 1
        if self.acknowledged + self.unknown == len(self.records):
            self._finished(self)

    def fail(self) -> None:
        """Note that none of its records was sent."""
        self.unknown = len(self.records)
        self._finished(self)


class Publisher:
    """A thread that sends batches of records; a context manager.

    It keeps no record of a request that was answered: the queue is bounded, and records that no client waits for any
    more are dropped.

    Args:
        connect: makes the sender; it may raise `HeartwheelError` while Kafka is away.
        records_max: most records that wait or are on their way.
    """

    def __init__(self, connect: Callable[[], BulkSender], *, records_max: int) -> None:
        self._connect, self._records_max = connect, records_max
        self._waiting: queue.SimpleQueue[PublishedRequest | None] = queue.SimpleQueue()
        self._done: list[tuple[asyncio.Future[PublishedRequest], PublishedRequest]] = []
        self._flying = 0
        self._records = 0
        self._worker = Worker(self._run, "gateway-publisher")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tried_s = float("-inf")
        self.connected = False
        """Whether Kafka has taken the last record."""

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        self._worker.stop()

    @property
    def records(self) -> int:
        """The number of records that wait or are on their way."""
        return self._records

    async def publish(self, records: Sequence[BeatRecord], timeout_s: float) -> PublishedRequest | None:
        """Send records and wait until the outcome of all is known; called from one event loop.

        Returns:
            The request's outcome; `None` if there was no room for its records, and none was sent.

        Raises:
            TimeoutError: it took too long: some records may arrive, and the others will not be sent any more.
        """
        if self._records + len(records) > self._records_max:
            return None
        self._loop = asyncio.get_running_loop()
        answer: asyncio.Future[PublishedRequest] = self._loop.create_future()
        batch = PublishedRequest(records, lambda batch: self._done.append((answer, batch)))
        self._records += len(records)
        self._waiting.put(batch)
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            batch.given_up = True
            raise

    def _run(self) -> None:
        sender = self._new_sender()
        ended = False
        while not ended:
            batches, ended = self._take()
            if sender is None:
                sender = self._new_sender()
            for batch in batches:
                self._flying += 1
                if sender is None or batch.given_up:
                    batch.fail()
                    continue
                for record in batch.records:
                    sender.send(record.group_id.encode(), record.value, batch.note)
                sender.poll()
            if sender is not None:
                sender.poll()
            self._tell()
        if sender is not None:
            sender.close()
        self._tell()

    def _new_sender(self) -> BulkSender | None:
        """Connect to Kafka; `None` if it cannot be reached, or if the last attempt was only just made."""
        if time.monotonic() - self._tried_s < _RETRY_S:
            return None
        try:
            sender = self._connect()
        except HeartwheelError as error:
            _log.warning("%s", error)
            sender = None
        self._tried_s = time.monotonic()
        self.connected = sender is not None
        return sender

    def _take(self) -> tuple[list[PublishedRequest], bool]:
        """Take the waiting requests. If there are none, wait for one, but only briefly while Kafka may answer."""
        taken: list[PublishedRequest] = []
        try:
            batch = self._waiting.get(timeout=_LOOK_S if self._flying else _RETRY_S)
            while True:
                if batch is None:
                    return taken, True
                taken.append(batch)
                if len(taken) >= _TAKEN_MAX:
                    break
                batch = self._waiting.get_nowait()
        except queue.Empty:
            pass
        return taken, False

    def _tell(self) -> None:
        done, self._done = self._done, []
        if not done:
            return
        self._flying -= len(done)
        self.connected = done[-1][1].unknown == 0
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer, done)

    def _answer(self, done: list[tuple[asyncio.Future[PublishedRequest], PublishedRequest]]) -> None:
        for answer, batch in done:
            self._records -= len(batch.records)
            if not answer.done():
                answer.set_result(batch)
