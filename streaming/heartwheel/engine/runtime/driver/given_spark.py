"""A Spark that others have started: `spark-submit`, or a managed service with a session in the program's process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any, Final

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from heartwheel.kafka.broker.spark_release import UnfitSparkError

_REMOTE: Final = "SPARK_REMOTE"
_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
_CONNECTOR: Final = "org.apache.spark.sql.kafka010.KafkaSourceProvider"

_shared: Final = weakref.WeakSet[SparkSession]()
"""Sessions from `share_session`."""


def has_session() -> bool:
    """Return whether this process has a Spark session already."""
    return SparkContext._active_spark_context is not None  # noqa: SLF001 - PySpark offers no other way


def has_jvm() -> bool:
    """Return whether Spark's JVM runs already: that of `spark-submit`, or of the session of this process."""
    return _GATEWAY in os.environ or has_session()


def require_own_driver() -> None:
    """Refuse Spark Connect, through which nobody sees the JVM of the driver.

    Raises:
        UnfitSparkError: sessions of this process go through it.
    """
    if is_remote() or _REMOTE in os.environ:
        raise UnfitSparkError(
            "sessions of this process go through Spark Connect, and the job needs Spark's driver in its own process",
            hint="start it with spark-submit, or on a cluster that one user has alone",
        )


def require_choice(master: str) -> None:
    """Refuse a master beside a session that has one.

    Args:
        master: `spark.master` of the configuration.

    Raises:
        UnfitSparkError: this process has a session, and the configuration does not ask for it.
    """
    if has_session() and master != "submitted":
        raise UnfitSparkError(
            f"this process has a Spark session already, and spark.master is {master}", hint="--master submitted uses it"
        )


def share_session(conf: Mapping[str, str]) -> SparkSession:
    """Make a session of our own on the Spark of this process; others keep theirs as they are.

    Args:
        conf: properties of Spark; those that a session cannot set stay as they are.
    """
    session = SparkSession.builder.getOrCreate().newSession()
    for name, value in conf.items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    _shared.add(session)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop a session and its Spark, unless others have started that.

    Args:
        session: from `start_session`.
    """
    if session not in _shared:
        session.stop()


def require_connector(session: SparkSession) -> None:
    """Refuse a JVM that was started without the Kafka connector: it can take none any more.

    Raises:
        UnfitSparkError: it has no such class.
    """
    jvm: Any = session.sparkContext._jvm  # noqa: SLF001 - PySpark offers no other way
    try:
        jvm.java.lang.Class.forName(_CONNECTOR, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError as error:
        raise UnfitSparkError(
            f"Spark {pyspark.__version__} was started without its Kafka connector",
            hint="start it with the jars that this prints: python -m heartwheel.kafka.broker.jars spark;"
            " docs/managed-spark.md shows how",
        ) from error
