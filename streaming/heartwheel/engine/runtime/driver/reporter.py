"""Writes the state of the job to the job topic: at every batch, at every phase, and when nothing happens."""

from __future__ import annotations

import collections
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.worker import Worker
from heartwheel.engine.runtime.driver.job_tally import JobTally
from heartwheel.engine.runtime.driver.progress import Progress
from heartwheel.engine.runtime.state.faults import Fault
from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
from heartwheel.kafka.sender import Sender
from heartwheel.settings import Settings
from heartwheel.wire.job import JOB_KEY, JobRow, Phase

QUIET_S_MAX: Final = 5.0
"""A row is written at least so often, so that silence means that the process is gone or hangs."""

_WAITING_MAX: Final = 64
_FLUSH_MS: Final = 5_000
_CLOSE_S_MAX: Final = 8.0
_BACKOFF_S: Final = 2.0

_log = logging.getLogger(__name__)


def _ignore(_: JobRow) -> None:
    """Do nothing: the caller gave no listener."""


class RowWriter(Protocol):
    """Write rows of the job topic; every call may block and may fail as the client of Kafka does."""

    def write(self, row: JobRow) -> None:
        """Append a row, and wait until its fate is known."""

    def close(self) -> None:
        """Close the connection to the broker."""


class KafkaRowWriter:
    """Write rows to the topic in Kafka.

    Raises:
        KafkaUnreachableError: nobody answers.
        KafkaRefusedError: the cluster refuses the login or knows no such topic.
    """

    def __init__(self, settings: Settings) -> None:
        kafka = settings.kafka
        self._sender = Sender(kafka.bootstrap_servers, kafka.topics.job, properties=kafka.client, linger_ms=0)

    def write(self, row: JobRow) -> None:
        """Append a row, and wait until its fate is known; one that is lost is followed by a newer one."""
        self._sender.send(JOB_KEY.encode(), msgspec.json.encode(row))
        self._sender.flush(_FLUSH_MS)

    def close(self) -> None:
        """Close the connection to the broker."""
        self._sender.close()


class JobReporter:
    """Write the rows of the job topic from a thread of its own, and never keep the engine waiting.

    The engine's listeners put a row into a short queue and return. While Kafka is away the oldest rows are dropped, and
    the newest are written afterwards. `test_the_engine_never_waits_for_kafka` holds that.

    Args:
        on_row: called with each row as it is made; it must not block.
        connect: makes the writer, each time that one is needed.
        quiet_s: longest time between two rows, seconds.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_row: Callable[[JobRow], None] = _ignore,
        connect: Callable[[Settings], RowWriter] = KafkaRowWriter,
        quiet_s: float = QUIET_S_MAX,
    ) -> None:
        self.tally = JobTally(settings)
        self._on_row = on_row
        self._settings = settings
        self._connect = connect
        self._quiet_s = quiet_s
        self._waiting: collections.deque[JobRow] = collections.deque(maxlen=_WAITING_MAX)
        self._changed = threading.Event()
        self._writer: RowWriter | None = None
        self._warned = False
        self._worker = Worker(self._run, "job-reporter", close_s=_CLOSE_S_MAX)

    def on_progress(self, batch: Progress) -> None:
        """Listen to the engine's batches."""
        self.tally.add_batch(batch)
        self._put()

    def on_phase(self, phase: str) -> None:
        """Listen to the engine's phases; the last one is reported by `__exit__`, when its reason is known."""
        if phase != Phase.STOPPED:
            self.tally.enter(phase)
            self._put()

    def on_fault(self, fault: Fault) -> None:
        """Listen to what ends the engine's query; the phase that follows tells it."""
        self.tally.add_fault(fault)

    def __enter__(self) -> Self:
        self._worker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Report that the job has stopped, and why if it failed; wait a bounded time for that row to be written."""
        if error is not None:
            words = str(error) if isinstance(error, HeartwheelError) else type(error).__name__
            self.tally.add_fault(Fault(words, None, None))
        self.tally.enter(Phase.STOPPED)
        self._put()  # before the end is called for, or the thread might look for it too early
        self._worker.end()
        self._changed.set()
        self._worker.join()

    def _put(self) -> None:
        row = self.tally.row()
        self._waiting.append(row)
        self._changed.set()
        self._on_row(row)

    def _run(self) -> None:
        while not self._worker.stopping:
            if not self._changed.wait(self._quiet_s):
                self._put()
            self._changed.clear()
            self._write_waiting()
        self._write_waiting()
        self._disconnect()

    def _write_waiting(self) -> None:
        try:
            writer = self._writer = self._writer or self._connect(self._settings)
            while self._waiting:
                writer.write(self._waiting.popleft())
            self._warned = False
        except (KafkaUnreachableError, KafkaRefusedError) as error:
            self._warn(error)
            self._disconnect()
            self._worker.wait(_BACKOFF_S)

    def _warn(self, error: Exception) -> None:
        """Log once that the job's rows cannot be written; the job continues without them."""
        if not self._warned:
            _log.warning("the job topic gets no rows for now: %s", str(error).partition("\n")[0])
        self._warned = True

    def _disconnect(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
