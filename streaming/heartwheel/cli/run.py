"""`heartwheel run`: the job itself, for as long as it is wanted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heartwheel.cli.broker_checks import bound_it, unbounded
from heartwheel.cli.console import BootstrapFlag, ConfigFile, MasterFlag, PlainFormatter, SetFlags, load
from heartwheel.cli.progress import fetch_shown
from heartwheel.cli.signals import stopped_by_signals
from heartwheel.cli.topics import operations_specs, topic_specs
from heartwheel.errors import HeartwheelError
from heartwheel.settings import Settings
from heartwheel.settings.locations import ONE_JOB_HINT, renames_atomically, without_atomic_rename

if TYPE_CHECKING:
    from heartwheel.spark.engine import Engine
    from heartwheel.spark.progress import Progress as BatchProgress
    from heartwheel.spark.reporter import JobReporter

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

    It reads what is in the topic from where it was left, in bounded batches, and writes ticks into it, which carry
    the time of partitions where nobody else writes. One line a batch goes to stderr, and of batches that did nothing
    one in ten seconds. The running batch is finished before it ends. Exit code 1 if Kafka does not answer, a topic is
    missing, or the checkpoint belongs to another configuration or version.

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
    log_to_stderr()
    require_topics(settings)
    if not renames_atomically(settings.checkpoint.location):
        _log.warning("%s; hint: %s", without_atomic_rename(settings.checkpoint.location), ONE_JOB_HINT)
    jars = fetch_shown("spark")
    from heartwheel.metrics.job_metrics import job_metrics
    from heartwheel.spark.reporter import JobReporter

    with job_metrics(settings) as metrics, JobReporter(settings, on_row=metrics.take_job) as reporter:
        run_until_signal(_engine(settings, jars, reporter), settings)


def _engine(settings: Settings, jars: list[Path], reporter: JobReporter) -> Engine:
    """Make the engine, and let it tell what it does to the log and to the job topic."""
    from heartwheel.spark.engine import Engine
    from heartwheel.spark.progress import IdleLog

    log = IdleLog()

    def progress(batch: BatchProgress) -> None:
        if log.wants(batch):
            _log.info("%s", batch.line())
        reporter.on_progress(batch)

    def phase(name: str) -> None:
        _log.info(name)
        reporter.on_phase(name)

    return Engine(
        settings,
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
    """Send the log to stderr, one line a record, and keep the clients' chatter out of it."""
    logging.basicConfig(level=logging.INFO)
    # Whether Kafka answers is said by the job, once; its client says it at every attempt.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # That Spark's JVM is gone likewise; Py4J tells it by name and also, with a traceback, by no name at all.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)-7s %(message)s"))
        handler.addFilter(lambda record: record.name != "root")


def spark_log_file() -> Path:
    """Return the file that Spark's JVM logs to."""
    from heartwheel.broker.jars import default_cache_dir

    return default_cache_dir().parent / "logs" / "spark.log"


def require_topics(settings: Settings, *, operations: bool = False) -> None:
    """Look whether the topics are there and right, before minutes are spent on anything else.

    Args:
        settings: the checked configuration.
        operations: whether those of delayed operations are meant.

    Raises:
        KafkaUnreachableError: nobody answers.
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
