"""The life of the job: check, read the topic from where it was left, stop without a loss, come back after a fault."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.phrases import count
from heartwheel.engine.runtime.driver.brake import Brake, ends_of
from heartwheel.engine.runtime.driver.checkpoint import Manifest
from heartwheel.engine.runtime.driver.given_spark import has_jvm, require_choice, stop_session
from heartwheel.engine.runtime.driver.job import Job
from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.driver.map_tasks import MapTasks
from heartwheel.engine.runtime.driver.progress import Progress, ProgressReader
from heartwheel.engine.runtime.driver.session import jvm_exit_code, session_conf, start_session
from heartwheel.engine.runtime.driver.ticker import Ticker
from heartwheel.engine.runtime.driver.topic_guard import TopicGuard
from heartwheel.engine.runtime.driver.unfinished import Unfinished
from heartwheel.engine.runtime.driver.wall_clock import WallClock
from heartwheel.engine.runtime.driver.warm import warm_workers
from heartwheel.engine.runtime.state.faults import OUT_OF_MEMORY, Fault, explain, explain_end
from heartwheel.settings import format_size
from heartwheel.settings.locations import is_local, runs_elsewhere

_POLL_S: Final = 0.1
_BACKOFF_S_MAX: Final = 30.0
_METADATA_S_MAX: Final = 5.0
_SET_BACK_S_MIN: Final = 2.0  # a restart of the query costs about as much

_log = logging.getLogger(__name__)


def _ignore(_: object) -> None:
    """Do nothing: the caller gave no listener."""


class JobFailedError(HeartwheelError):
    """The job ended by an error that another start would not mend."""


class Engine:
    """Run a job until it is asked to stop.

    Args:
        jars: the Kafka connector's jars.
        on_progress: called with each finished batch.
        on_phase: called with `starting`, `catching up`, `live`, `retrying` and `stopped`, as they come.
        on_ticker: called with the ticker once it is started.
        on_guard: called with what looks at the topic, before it is started.
        on_fault: called with what has ended the query, before it is tried again or given up.
        log_file: where the JVM logs; `None` for its default. One that runs already logs where it does.
    """

    def __init__(
        self,
        job: Job[Any],
        jars: list[Path],
        *,
        on_progress: Callable[[Progress], None] = _ignore,
        on_phase: Callable[[str], None] = _ignore,
        on_fault: Callable[[Fault], None] = _ignore,
        on_ticker: Callable[[Ticker], None] = _ignore,
        on_guard: Callable[[TopicGuard], None] = _ignore,
        log_file: Path | None = None,
    ) -> None:
        self._job = job
        self._jars = jars
        self._on_progress = on_progress
        self._on_phase = on_phase
        self._on_fault = on_fault
        self._on_ticker = on_ticker
        self._on_guard = on_guard
        self._log_file = None if has_jvm() else log_file
        self._unfinished = Unfinished(self._job)
        self._partitions = 0
        self._ticking: Ticker | None = None
        self._stop = threading.Event()
        self._moved = False
        self._phase = ""
        source = self._job.config.source
        self._brake = Brake(
            self._job.settings.engine.waiting_records_max,
            ends=lambda: ends_of(self._job.settings, source),
            sleep=self._stop.wait,
        )
        self._guard = TopicGuard(self._job.settings, source, on_recreated=self._end_by)
        self._ended_by: HeartwheelError | None = None

    @property
    def config(self) -> StreamConfig:
        """The job's configuration, as the checkpoint has it."""
        config: StreamConfig = self._job.config
        return config

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
        self._enter("starting")
        self._guard.check(None)
        self._refuse_what_ends_it(None)
        spark = self._start_spark()
        try:
            if not runs_elsewhere(self._job.settings.spark.master):
                warm_workers(spark, self._job.config.map_tasks)
            self._job.open(spark)
            if not is_local(self._job.settings.checkpoint.location):
                self._guard.check(spark)
            self._refuse_what_ends_it(spark)
            self._on_guard(self._guard)
            with self._ticker() as ticker, self._guard:
                self._ticking = ticker
                self._on_ticker(ticker)
                self._supervise(spark, ticker)
            stop_session(spark)
        except (Py4JError, ConnectionError) as error:
            memory = format_size(self._job.settings.spark.driver_memory_bytes)
            exit_code = jvm_exit_code(spark)
            fault = explain_end(exit_code, memory=memory, log_file=self._log_file)
            if exit_code in OUT_OF_MEMORY:
                with contextlib.suppress(OSError):
                    self._unfinished.note_out_of_memory()
            raise JobFailedError(fault.message, hint=fault.hint) from error
        except BaseException:
            with contextlib.suppress(Py4JError, ConnectionError):
                stop_session(spark)
            raise
        finally:
            self._enter("stopped")
        if self._ended_by is not None:
            raise self._ended_by

    def _start_spark(self) -> SparkSession:
        settings = self._job.settings
        require_choice(settings.spark.master)
        partitions = self._job.manifest.shuffle_partitions
        conf = session_conf(settings, self._jars, shuffle_partitions=partitions, log_file=self._log_file)
        spark = start_session(conf, log_file=self._log_file)
        _log.info("Spark is up")
        return spark

    def _end_by(self, error: HeartwheelError) -> None:
        """End the job after the running batch, by an error."""
        self._ended_by = error
        self.stop()

    def _enter(self, phase: str) -> None:
        if phase != self._phase:
            self._phase = phase
            self._on_phase(phase)

    def _ticker(self) -> Ticker:
        kafka = self._job.settings.kafka
        return Ticker(
            kafka.bootstrap_servers,
            self._job.config.source,
            run=self._job.run,
            interval_ms=self._job.config.tick_interval_ms,
            properties=kafka.client,
        )

    def _refuse_what_ends_it(self, spark: SparkSession | None) -> None:
        """Start no query on a batch that has ended the job again and again, if it is known what in it does."""
        try:
            fault = self._unfinished.look(spark)
        except OSError as error:
            raise JobFailedError(f"the checkpoint cannot be looked at: {error}") from error
        if fault is not None:
            self._on_fault(fault)
            raise JobFailedError(fault.message, hint=fault.hint)

    def _supervise(self, spark: SparkSession, ticker: Ticker) -> None:
        tries = 0
        self._map_tasks = MapTasks(self._job.config.map_tasks, state_partitions=self.manifest.shuffle_partitions)
        interval = f"{self._job.config.trigger_interval_ms} milliseconds"
        while not self._stop.is_set():
            self._moved = False
            self._brake_on()
            try:
                partitions = self._partitions = ticker.count_partitions(_METADATA_S_MAX)
                self._unfinished.pass_over(spark, partitions, self._watch)
                if not self._stop.is_set():
                    tasks = self._map_tasks.tasks
                    self._watch(self._job.start(spark, partitions=partitions, map_tasks=tasks, processingTime=interval))
            except PySparkException as error:
                tries = 1 if self._moved else tries + 1
                fault = explain(error)
                self._job.adapt_to(fault)
                self._wait_or_give_up(fault, tries, error)

    def _brake_on(self) -> None:
        """Wait while too many records wait."""
        if not self._brake.holds:
            return
        fault = self._brake.fault()
        self._on_fault(fault)
        _log.warning("%s", fault.message)
        self._enter("retrying")
        self._brake.wait(self._stop.is_set)

    def _wait_or_give_up(self, fault: Fault, tries: int, error: Exception) -> None:
        self._on_fault(fault)
        if fault.tries_max is not None and tries > fault.tries_max:
            raise JobFailedError(fault.message, hint=fault.hint) from error
        backoff_s = min(2.0 ** (tries - 1), _BACKOFF_S_MAX)
        _log.warning("%s; trying again in %g s", fault.message, backoff_s)
        self._enter("retrying")
        self._stop.wait(backoff_s)

    def _watch(self, query: StreamingQuery) -> None:
        progress, clock, set_back_s, tasks = ProgressReader(query), WallClock(), 0.0, self._map_tasks.tasks
        while not query.awaitTermination(_POLL_S):  # type: ignore[arg-type]  # takes fractions of a second too
            finished = list(progress.fresh())
            for batch in finished:
                self._add(batch)
            if finished:
                self._brake.look([batch.waiting for batch in finished])
                self._map_tasks.look(finished)
            set_back_s += clock.set_back_s()
            wanted = self._stop.is_set() or self._brake.holds or set_back_s >= _SET_BACK_S_MIN or self._has_grown()
            wanted |= self._map_tasks.tasks != tasks
            # Between two batches a stop costs nothing; a batch that is cut short is done again at the next start.
            if wanted and (finished or not query.status["isTriggerActive"]):
                query.stop()
                break
        for batch in progress.fresh():
            self._add(batch)
        if self._map_tasks.tasks != tasks:
            _log.info("the topic is read by %s from now on", count(self._map_tasks.tasks, "task"))
        if set_back_s >= _SET_BACK_S_MIN:
            _log.warning("the clock was set back by %.0f s, for which Spark would wait: the query restarts", set_back_s)

    def _has_grown(self) -> bool:
        """Return whether the topic has more partitions than the query knows, so that another one is to be started."""
        return self._ticking is not None and self._ticking.count_partitions(0) > self._partitions

    def _add(self, batch: Progress) -> None:
        self._moved = True
        self._enter("catching up" if batch.held else "live")
        self._on_progress(batch)
