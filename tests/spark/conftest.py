"""What tests of queries need: a Spark of this process, one a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from heartwheel.engine.runtime.driver.session import end_session, session_conf, start_session
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.settings import load_settings


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Run one Spark for the queries of a file: Spark's own defaults, but for what makes its start quick."""
    settings = load_settings(overrides=["spark.master=local[2]"]).settings
    conf = session_conf(settings, fetch_jars("spark"), shuffle_partitions=2)
    conf["spark.sql.streaming.noDataMicroBatches.enabled"] = "true"
    session = start_session(conf)
    yield session
    end_session(session, patience_s=60)
