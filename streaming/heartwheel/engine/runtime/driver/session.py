"""The Spark session of the job: the settings that its behaviour depends on, with the reason for each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.private import private_folder
from heartwheel.engine.runtime.driver.given_spark import (
    has_jvm,
    has_session,
    require_connector,
    require_own_driver,
    share_session,
)
from heartwheel.engine.runtime.driver.jvm_signals import own_signals
from heartwheel.engine.runtime.driver.secret_properties import properties_file
from heartwheel.engine.runtime.driver.shipping import ship_code
from heartwheel.engine.runtime.map.frames import FRAME_SETTINGS
from heartwheel.kafka.broker.jars import require_known_spark
from heartwheel.kafka.broker.java import class_archive_file, class_archive_options, find_java
from heartwheel.settings import Settings, holds_secret
from heartwheel.settings.cluster import cluster_properties
from heartwheel.settings.locations import is_local, runs_elsewhere
from heartwheel.settings.secret import HIDDEN_NAMES

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
# Spark 4.1 has moved the class.
_LOCAL_FILES: Final = (
    f"{_STREAMING}.FileSystemBasedCheckpointFileManager"
    if pyspark.__version__.startswith("4.0.")
    else f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
)

_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
_CLASS_PATH: Final = "spark.driver.extraClassPath"
_ADD_UP: Final[Mapping[str, str]] = {_JVM_OPTIONS: " ", _CLASS_PATH: os.pathsep, "spark.jars": ","}
"""What a person's value is added to, by the separator."""

_PYTHON: Final = "spark.pyspark.python"
_STATE_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_LOCAL_FILE_SYSTEM: Final = "spark.hadoop.fs.file.impl"
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_LAST_WORDS_S: Final = 10
"""How long a JVM may take from its last answer to its end."""
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

BASE: Final[Mapping[str, str]] = {
    "spark.app.name": "heartwheel",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    **FRAME_SETTINGS,
    # Each batch writes the whole state of every shard: a hundred of them, Spark's default, would be gigabytes.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Only then are the others removed. In Spark's minute 100 thousand members write 445 MiB, in ten seconds 195
    # (`benchmarks.costs`).
    "spark.sql.streaming.stateStore.maintenanceInterval": "10s",
    # Ticks make every batch one with data, so the batches without data that Spark adds would only double the work.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    # How much a Python worker is sent at once, in place of 64 KiB: it makes a drain a twentieth faster.
    "spark.sql.execution.pandas.udf.buffer.size": "1048576",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.kafka.producer.cache.timeout": "10m",
    # Plans and properties that Spark shows or logs carry the options of the Kafka source, a JAAS line among them.
    "spark.redaction.regex": HIDDEN_NAMES,
    "spark.sql.redaction.options.regex": HIDDEN_NAMES,
    # Arrow's allocator gives freed pages back to the system within 10 ms, and each batch would pay for them anew: a
    # sixth of the workers' time in a drain of a million members. With ten seconds, ms, only an idle worker does.
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "10000",
    # The verdict of a batch must be in Kafka before the batch is committed; a task that fails is tried again.
    "spark.task.maxFailures": "4",
}
"""What every session gets; `[spark.conf]` of the configuration comes on top."""

_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Workers without archives on their path, and with their imports done (measured: 70 to 80 ms of CPU a task less).
    "spark.python.daemon.module": "heartwheel.engine.runtime.map.daemon",
    # The default file system keeps a checksum beside each file, and where Hadoop's native libraries are missing it
    # starts a `chmod` for either: eight processes a batch. What is in the state has checksums of its own.
    _LOCAL_FILE_SYSTEM: "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def archive_file(jars: Sequence[Path]) -> Path:
    """Return where `class_archive` keeps Spark's classes: beside the cache of these jars."""
    return class_archive_file(jars, sys.prefix, pyspark.__version__)


def jvm_option(option: str) -> str:
    """Write one option of a JVM so that Spark, which cuts options at spaces, passes it on whole.

    Args:
        option: a path in it may have spaces.
    """
    if not any(char.isspace() or char in "\"'\\" for char in option):
        return option
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def session_conf(
    settings: Settings,
    jars: Sequence[Path],
    *,
    shuffle_partitions: int,
    log_file: Path | None = None,
    archive: bool = True,
) -> dict[str, str]:
    """Assemble the session's properties.

    Args:
        jars: the Kafka connector's.
        archive: whether a local JVM uses the archive of its classes, if there is one.
    """
    spark = settings.spark
    conf = dict(BASE)
    if spark.master != "submitted":
        conf["spark.master"] = spark.master
    conf["spark.driver.memory"] = f"{spark.driver_memory_bytes // 2**20}m"
    conf["spark.sql.shuffle.partitions"] = str(shuffle_partitions)
    # Short of memory a JVM may lose a thread and live on without it; one that ends is started again by its supervisor.
    options = ["-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError", f"-Dlog4j2.configurationFile={_LOG4J}"]
    if log_file is not None:
        private_folder(log_file.parent)
        options.append(f"-Dheartwheel.log.file={log_file}")
    if archive and jars and not runs_elsewhere(spark.master):
        options += class_archive_options(archive_file(jars))
    conf[_JVM_OPTIONS] = " ".join(map(jvm_option, options))
    if runs_elsewhere(spark.master):
        if spark.executor_python or spark.master != "submitted":
            conf[_PYTHON] = spark.executor_python or "python3"
        conf |= cluster_properties(settings)
        if jars:
            conf["spark.jars"] = ",".join(map(str, jars))
    else:
        conf |= _LOCAL
        # Jars that are named as Spark's are copied, and fetched over a socket, at every start.
        conf[_CLASS_PATH] = os.pathsep.join(map(str, jars))
    if is_local(settings.checkpoint.location):
        # The default manager starts a process for each checkpoint file where Hadoop's native libraries are missing.
        conf["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_FILES
    if "RocksDB" in spark.conf.get(_STATE_STORE, ""):
        # Its snapshots are copied by a file system that has checksums, and by no other (a ClassCastException).
        conf.pop(_LOCAL_FILE_SYSTEM, None)
    for name, value in spark.conf.items():
        # Options of the JVM and jars add up: those above are needed whatever a person wants on top.
        conf[name] = f"{conf[name]}{_ADD_UP[name]}{value}" if name in _ADD_UP and name in conf else value
    return conf


def start_session(conf: Mapping[str, str], *, log_file: Path | None = None) -> SparkSession:
    """Start Spark: workers of this machine on the very Python that runs this, those of a cluster with this very code.

    A process that has a Spark already gets a session of its own on it, with those properties that a session may set.

    Args:
        conf: from `session_conf`.
        log_file: gets what the JVM and the workers print to stderr; `None` leaves it on this process's.

    Raises:
        JavaError: no Java was found, or only one that is too old.
        UnfitSparkError: the job does not run on this release of Spark, through Spark Connect, or without a connector.
        HeartwheelError: Spark's JVM did not start for another cause.
    """
    require_known_spark()
    require_own_driver()
    given = has_jvm()
    session = share_session(conf) if has_session() else _new_session(conf, log_file)
    if given:
        require_connector(session)
    if given or runs_elsewhere(str(session.sparkContext.master)):
        ship_code(session.sparkContext)
    return session


def _new_session(conf: Mapping[str, str], log_file: Path | None) -> SparkSession:
    if _PYTHON in conf:
        os.environ["PYSPARK_PYTHON"] = conf[_PYTHON]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A JVM that runs already, as spark-submit has started it, is set over its socket and reads no file.
    is_started = _GATEWAY in os.environ
    secret = {} if is_started else {name: value for name, value in conf.items() if holds_secret(name, value)}
    builder = SparkSession.builder
    for name in conf.keys() - secret.keys():
        builder = builder.config(name, conf[name])
    with own_signals(), _stderr_to(log_file), properties_file(secret):
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise _start_error(error, log_file) from error
    _be_quiet_about_the_end(session)
    return session


def _start_error(error: PySparkRuntimeError, log_file: Path | None) -> HeartwheelError:
    """Return why the JVM did not start; a Java is asked for its version only now, as that takes a JVM's start."""
    find_java()
    where = "" if log_file is None else f"; its last words are in {log_file}"
    return HeartwheelError(f"Spark's JVM did not start: {error}", hint=f"heartwheel doctor checks this machine{where}")


def end_session(session: SparkSession, patience_s: float) -> None:
    """Stop a session and its JVM, and wait for the end of that; this process can start another one.

    Args:
        session: one that `start_session` has started.
        patience_s: how long the JVM may take.

    Raises:
        subprocess.TimeoutExpired: it takes longer.
    """
    session.stop()
    context: Any = SparkContext
    # PySpark keeps its JVM for the next session, and offers no other way to part from it.
    gateway, context._gateway, context._jvm = context._gateway, None, None  # noqa: SLF001
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(patience_s)


def _be_quiet_about_the_end(session: SparkSession) -> None:
    """Keep PySpark's server of accumulators, which nothing here uses, from printing a traceback when the JVM ends."""
    server: Any = session.sparkContext._accumulatorServer  # noqa: SLF001 - PySpark offers no other way
    server.handle_error = lambda *_: None


def jvm_exit_code(session: SparkSession) -> int | None:
    """Return how Spark's JVM ended, negative for a signal; `None` if it runs, or another process started it.

    Args:
        session: one that lost its JVM.
    """
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - PySpark keeps the process to itself
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return None
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(_LAST_WORDS_S)
    return None


@contextlib.contextmanager
def _stderr_to(file: Path | None) -> Iterator[None]:
    """Redirect the stderr of a process that is started in the block to a file."""
    if file is None:
        yield
        return
    sys.stderr.flush()
    mine = os.dup(2)
    with file.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(mine, 2)
        os.close(mine)
