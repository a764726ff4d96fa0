"""The life of the job: check, catch up with the backlog, go live, stop without a loss, come back after a fault."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.errors import HeartwheelError
from heartwheel.settings import Settings, format_size
from heartwheel.spark.checkpoint import Manifest
from heartwheel.spark.faults import Fault, explain, explain_end
from heartwheel.spark.growth import GrowthUnknownError, has_grown
from heartwheel.spark.job import HeartbeatJob, Job
from heartwheel.spark.job_config import StreamConfig
from heartwheel.spark.progress import Progress, ProgressReader
from heartwheel.spark.session import jvm_exit_code, session_conf, start_session

_POLL_S: Final = 0.1
_BACKOFF_S_MAX: Final = 30.0

_log = logging.getLogger(__name__)


def _ignore(_: object) -> None:
    """Stand for a listener that nobody gave."""


class JobFailedError(HeartwheelError):
    """Tell that the job ended by an error that starting again would not mend."""


class Engine:
    """Run a job until it is told to stop.

    Args:
        job: which one; settings stand for the heartbeat job.
        jars: the Kafka connector's jars.
        on_progress: called with each finished batch.
        on_phase: called with `starting`, `catching up`, `live`, `retrying` and `stopped`.
        on_fault: called with what has ended the query, before it is tried again or given up.
        log_file: where the JVM logs; `None` for its default.

    Raises:
        CheckpointError: the checkpoint does not fit the configuration.
    """

    def __init__(
        self,
        job: Job | Settings,
        jars: list[Path],
        *,
        on_progress: Callable[[Progress], None] = _ignore,
        on_phase: Callable[[str], None] = _ignore,
        on_fault: Callable[[Fault], None] = _ignore,
        log_file: Path | None = None,
    ) -> None:
        self._job: Job = HeartbeatJob(job) if isinstance(job, Settings) else job
        self._jars = jars
        self._on_progress = on_progress
        self._on_phase = on_phase
        self._on_fault = on_fault
        self._log_file = log_file
        self._stop = threading.Event()
        self._moved = False

    @property
    def config(self) -> StreamConfig:
        """The job's configuration, as the checkpoint has it."""
        return self._job.config

    @property
    def manifest(self) -> Manifest:
        """What the checkpoint was made with."""
        return self._job.manifest

    def stop(self) -> None:
        """Ask the job to end after the running batch; safe to call from a signal handler or another thread."""
        self._stop.set()

    def run(self) -> None:
        """Run until stopped.

        Raises:
            JobFailedError: the job failed, and starting again would not help.
        """
        self._on_phase("starting")
        conf = session_conf(
            self._job.settings,
            self._jars,
            shuffle_partitions=self._job.manifest.shuffle_partitions,
            log_file=self._log_file,
        )
        spark = start_session(conf, log_file=self._log_file)
        try:
            self._job.open(spark)
            self._supervise(spark)
            spark.stop()
        except (Py4JError, ConnectionError) as error:
            memory = format_size(self._job.settings.spark.driver_memory_bytes)
            fault = explain_end(jvm_exit_code(spark), memory=memory, log_file=self._log_file)
            raise JobFailedError(fault.message, hint=fault.hint) from error
        except BaseException:
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
            raise
        finally:
            self._on_phase("stopped")

    def _supervise(self, spark: SparkSession) -> None:
        tries = 0
        while not self._stop.is_set():
            self._moved = False
            try:
                self._catch_up(spark)
                if not self._stop.is_set():
                    self._live(spark)
            except (PySparkException, GrowthUnknownError) as error:
                tries = 1 if self._moved else tries + 1
                self._wait_or_give_up(explain(error), tries, error)

    def _wait_or_give_up(self, fault: Fault, tries: int, error: Exception) -> None:
        self._on_fault(fault)
        if fault.tries_max is not None and tries > fault.tries_max:
            raise JobFailedError(fault.message, hint=fault.hint) from error
        backoff_s = min(2.0 ** (tries - 1), _BACKOFF_S_MAX)
        _log.warning("%s; trying again in %g s", fault.message, backoff_s)
        self._on_phase("retrying")
        self._stop.wait(backoff_s)

    def _catch_up(self, spark: SparkSession) -> None:
        """Read what is in the topic, in bounded batches, clocks held: a backlog is not silence (promise P5)."""
        self._on_phase("catching up")
        config = self._job.config
        records_max: int | None = config.catch_up_max_records
        if has_grown(self._job.settings, config.source, spark):
            _log.info("%s got partitions since it was last read: its backlog is read in one batch", config.source)
            records_max = None
        query = self._job.start(spark, held=True, records_max=records_max, availableNow=True)
        self._watch(query, held=True)

    def _live(self, spark: SparkSession) -> None:
        """Read all that there is at every trigger, so that a batch's timestamp says what has been read."""
        self._on_phase("live")
        interval = f"{self._job.config.trigger_interval_ms} milliseconds"
        self._watch(self._job.start(spark, held=False, processingTime=interval), held=False)

    def _watch(self, query: StreamingQuery, *, held: bool) -> None:
        progress = ProgressReader(query, held=held)
        while not query.awaitTermination(_POLL_S):  # type: ignore[arg-type]  # takes fractions of a second too
            finished = list(progress.fresh())
            self._moved |= bool(finished)
            for batch in finished:
                self._on_progress(batch)
            # Between two batches a stop costs nothing; a batch that is cut short is done again at the next start.
            if self._stop.is_set() and (finished or not query.status["isTriggerActive"]):
                query.stop()
                break
        for batch in progress.fresh():
            self._on_progress(batch)
