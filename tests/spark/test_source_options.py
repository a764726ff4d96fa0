"""P6: how much of the log Kafka's consumer unpacks at once is bounded, by the length that records may have."""

from __future__ import annotations

from heartwheel.operations_job.job import operations_config
from heartwheel.settings import Settings, load_settings
from heartwheel.spark.frames import SHORT_BYTES_MAX
from heartwheel.spark.job_config import job_config
from heartwheel.spark.planned_batch import READ_AHEAD_MAX
from heartwheel.spark.query import LONG_POLL_MAX, source_options

POLL = "kafka.max.poll.records"
COUNTED = "spark.conf.spark.sql.execution.arrow.maxBytesPerBatch=64m"


def _settings(*flags: str) -> Settings:
    return load_settings(None, {}, list(flags)).settings


def test_p6_a_poll_of_short_records_has_160_mib_of_values_at_most() -> None:
    """P6: a job begins with polls of many records, as none of them may be long."""
    assert source_options(job_config(_settings(), shuffle_partitions=1))[POLL] == str(READ_AHEAD_MAX)
    assert READ_AHEAD_MAX * SHORT_BYTES_MAX <= 160 << 20


def test_p6_who_takes_long_records_polls_fewer() -> None:
    """P6: a job that counts the bytes of all records from the start, and the job of operations."""
    assert source_options(job_config(_settings(COUNTED), shuffle_partitions=1))[POLL] == str(LONG_POLL_MAX)
    assert source_options(operations_config(_settings(), shuffle_partitions=1))[POLL] == str(LONG_POLL_MAX)
