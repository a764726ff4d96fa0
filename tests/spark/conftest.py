"""What tests of queries need: one Spark for all of them, and a session of its own for each file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from heartwheel.engine.runtime.driver.session import end_session, session_conf, start_session
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.settings import load_settings

_ROOM: Final = Path(__file__).parent

_running: Final[list[SparkSession]] = []
"""The session that has started Spark, while Spark runs."""


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """Return a session of this file: Spark's own defaults, but for what makes its start quick.

    The JVM is shared by the files. Properties, views and queries are those of a session, so a file sees none of
    another's.
    """
    if not _running:
        settings = load_settings(overrides=["spark.master=local[2]", "spark.driver_memory=1GiB"]).settings
        conf = session_conf(settings, fetch_jars("spark"), shuffle_partitions=2)
        conf["spark.sql.streaming.noDataMicroBatches.enabled"] = "true"
        _running.append(start_session(conf))
    return _running[0].newSession()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End Spark after the last test that may use it: tests of other folders take a process without one for granted."""
    stays = nextitem is not None and nextitem.path.parent == _ROOM and nextitem.get_closest_marker("spark") is not None
    if _running and not stays:
        end_session(_running.pop(), patience_s=60)
