"""`heartwheel run`: the job itself, until it is stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.broker_checks import bound_it, unbounded
from heartwheel.front.cli.console import BootstrapFlag, ConfigFile, MasterFlag, PlainFormatter, SetFlags, load
from heartwheel.front.cli.extras import require
from heartwheel.front.cli.progress import fetch_shown
from heartwheel.front.cli.signals import stopped_by_signals
from heartwheel.front.cli.topic_specs import operations_specs, topic_specs
from heartwheel.settings import Settings
from heartwheel.settings.locations import ONE_JOB_HINT, renames_atomically, without_atomic_rename

if TYPE_CHECKING:
    from heartwheel.engine.runtime.driver.engine import Engine
    from heartwheel.engine.runtime.driver.progress import Progress as BatchProgress
    from heartwheel.engine.runtime.driver.reporter import JobReporter
    from heartwheel.wire.job import JobRow

_log = logging.getLogger("heartwheel")


def run(
    *,
    checkpoint: Annotated[
        str | None, typer.Option(help="Where offsets and state are kept (checkpoint.location).")
    ] = None,
    master: MasterFlag = None,
    bootstrap_servers: BootstrapFlag = None,
    config: ConfigFile = None,
    set_: SetFlags = None,
) -> None:
    """Run the job: heartbeats in, member expirations and rebalance triggers out, until SIGTERM or Ctrl-C.

    It continues reading the topic where it stopped, in bounded batches, and writes ticks into it, which make time pass
    in partitions that have no other records. One line per batch goes to stderr; of batches that did nothing, one in ten
    seconds. At the end the running batch is finished. Exit code 1 if Kafka does not answer, a topic is missing, or the
    checkpoint belongs to another configuration or version.

    For example:

        heartwheel run --bootstrap-servers kafka:9092 --checkpoint /var/lib/heartwheel

        heartwheel run --set engine.trigger_interval=2s --set engine.shards=32
    """
    settings = load(
        config,
        set_,
        kafka__bootstrap_servers=bootstrap_servers,
        checkpoint__location=checkpoint,
        spark__master=master,
    ).settings
    from heartwheel.kafka.broker.jars import require_known_spark

    require_known_spark()
    log_to_stderr()
    if settings.metrics.port:
        require("page", "metrics.port")
    require_topics(settings)
    if not renames_atomically(settings.checkpoint.location):
        _log.warning("%s; hint: %s", without_atomic_rename(settings.checkpoint.location), ONE_JOB_HINT)
    jars = connector_jars()
    from heartwheel.engine.runtime.driver.reporter import JobReporter

    with _metrics(settings) as on_row, JobReporter(settings, on_row=on_row) as reporter:
        run_until_signal(_engine(settings, jars, reporter), settings)


@contextmanager
def _metrics(settings: Settings) -> Iterator[Callable[[JobRow], None]]:
    """Serve metrics for the length of a `with` block, if the configuration names a port; yield what takes job rows."""
    if not settings.metrics.port:
        yield lambda _: None
        return
    from heartwheel.readers.metrics.job_metrics import job_metrics

    with job_metrics(settings) as metrics:
        yield metrics.take_job


def _engine(settings: Settings, jars: list[Path], reporter: JobReporter) -> Engine:
    """Return the engine, connected to the log and to the job topic."""
    from heartwheel.engine.heartbeats.plugin import heartbeat_job
    from heartwheel.engine.runtime.driver.engine import Engine
    from heartwheel.engine.runtime.driver.progress import IdleLog

    log = IdleLog()

    def progress(batch: BatchProgress) -> None:
        if log.wants(batch):
            _log.info("%s", batch.line())
        reporter.on_progress(batch)

    def phase(name: str) -> None:
        _log.info(name)
        reporter.on_phase(name)

    return Engine(
        heartbeat_job(settings),
        jars,
        on_progress=progress,
        on_phase=phase,
        on_fault=reporter.on_fault,
        on_ticker=lambda ticker: reporter.tally.watch(ticker.state),
        on_guard=lambda guard: reporter.tally.watch_topic(guard.problems),
        log_file=spark_log_file(),
    )


def run_until_signal(engine: Engine, settings: Settings) -> None:
    """Run an engine until SIGTERM or Ctrl-C."""
    _log.info("reading %s at %s", engine.config.source, settings.kafka.bootstrap_servers)
    with stopped_by_signals(engine.stop):
        engine.run()


def log_to_stderr() -> None:
    """Send the log to stderr, one line a record, without the clients' own messages."""
    logging.basicConfig(level=logging.INFO)
    # The job reports once whether Kafka answers; its client reports it at every attempt.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # The same holds for the loss of Spark's JVM; Py4J logs it by name and also, with a traceback, by no name at all.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # httpx logs every address, which may be a secret, and uvicorn every start.
    for name in ("httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)-7s %(message)s"))
        handler.addFilter(lambda record: record.name != "root")


def connector_jars() -> list[Path]:
    """Fetch the jars of Spark's Kafka connector; none for a JVM that runs already, which can take none any more."""
    from heartwheel.engine.runtime.driver.given_spark import has_jvm

    return [] if has_jvm() else fetch_shown("spark")


def spark_log_file() -> Path:
    """Return the file that Spark's JVM logs to."""
    from heartwheel.kafka.broker.jars import default_cache_dir

    return default_cache_dir().parent / "logs" / "spark.log"


def require_topics(settings: Settings, *, operations: bool = False) -> None:
    """Check that the topics exist and have the right settings, before any time is spent on anything else.

    Args:
        operations: whether to check those of delayed operations.

    Raises:
        KafkaUnreachableError: no broker answers.
        HeartwheelError: a topic is missing, or its settings would make verdicts wrong.
    """
    from heartwheel.kafka.topics import ensure_topics

    bootstrap = settings.kafka.bootstrap_servers
    specs = operations_specs(settings) if operations else topic_specs(settings)
    report = ensure_topics(bootstrap, specs, create=False, properties=settings.kafka.client)
    if report.missing:
        raise HeartwheelError(
            f"topics are missing at {bootstrap}: {', '.join(report.missing)}",
            hint=f"heartwheel topics {'--operations ' if operations else ''}--create",
        )
    wrong = [f"{d.topic}: {d.setting} is {d.found or 'not set'}, must be {d.wanted}" for d in report.differences]
    if wrong:
        raise HeartwheelError(
            f"topics at {bootstrap} have the wrong settings: {'; '.join(wrong)}",
            hint="change them with kafka-configs, or name other topics in [kafka.topics]",
        )
    for found in report.advice:
        _log.warning("%s; hint: %s --bootstrap-server %s", unbounded(found), bound_it(found), bootstrap)
