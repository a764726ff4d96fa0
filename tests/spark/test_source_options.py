"""P6: how much of the log Kafka's consumer unpacks at once is bounded, by the length that records may have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heartwheel.engine.heartbeats.config import job_config
from heartwheel.engine.operations_job.plugin import OperationsPlugin
from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.driver.planned_batch import READ_AHEAD_MAX
from heartwheel.engine.runtime.driver.query import POLL_MIN, UNPACKED_MAX, source_options
from heartwheel.engine.runtime.map.frames import SHORT_BYTES_MAX
from heartwheel.settings import Settings, load_settings

POLL = "kafka.max.poll.records"
COUNTED = "spark.conf.spark.sql.execution.arrow.maxBytesPerBatch=64m"


def _settings(*flags: str) -> Settings:
    return load_settings(None, {}, list(flags)).settings


def _counted(config: StreamConfig, *counts: int) -> StreamConfig:
    """Let the topic of a job have had so many partitions at each of its starts."""
    return replace(config, counts=tuple((count, batch) for batch, count in enumerate(counts)))


def _job(*counts: int, flags: tuple[str, ...] = ()) -> StreamConfig:
    return _counted(job_config(_settings(*flags), shuffle_partitions=1), *counts)


def test_p6_a_poll_of_short_records_has_160_mib_of_values_at_most() -> None:
    """P6: a job begins with polls of many records, as none of them may be long."""
    assert source_options(_job(8))[POLL] == str(READ_AHEAD_MAX)
    assert READ_AHEAD_MAX * SHORT_BYTES_MAX <= 160 << 20


@pytest.mark.parametrize(("partitions", "records"), [(1, 20_000), (8, 20_000), (10, 16_000), (32, 5_000), (900, 5_000)])
def test_p6_the_more_partitions_the_fewer_records_a_poll(partitions: int, records: int) -> None:
    """P6: Spark has a consumer a partition, and each keeps what a batch leaves of its last poll."""
    assert source_options(_job(partitions))[POLL] == str(records)
    assert records == POLL_MIN or partitions * records <= UNPACKED_MAX


def test_p6_a_topic_that_grew_has_its_newest_count() -> None:
    """P6: counts are kept from start to start; where none is known, there may be many partitions."""
    assert source_options(_job(8, 16))[POLL] == "10000"
    assert source_options(_job())[POLL] == str(POLL_MIN)


def test_p6_who_takes_long_records_polls_fewer() -> None:
    """P6: a job that counts the bytes of all records from the start, and the job of operations."""
    assert source_options(_job(8, flags=(COUNTED,)))[POLL] == str(POLL_MIN)
    operations = _counted(OperationsPlugin().config(_settings(), shuffle_partitions=1), 8)
    assert source_options(operations)[POLL] == str(POLL_MIN)
