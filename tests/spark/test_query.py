"""How the query asks Kafka for records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heartwheel.settings import load_settings
from heartwheel.spark.job_config import job_config
from heartwheel.spark.planned_batch import READ_AHEAD_MAX
from heartwheel.spark.query import POLL_RECORDS_MIN, UNPACKED_RECORDS_MAX, poll_records


def polled(*counts: int) -> int:
    """Give the records of a poll for a topic whose partitions were counted at each start."""
    settings = load_settings(None, {}, ["checkpoint.location=/nowhere"]).settings
    config = job_config(settings, shuffle_partitions=2)
    return poll_records(replace(config, counts=tuple((count, batch) for batch, count in enumerate(counts))))


@pytest.mark.parametrize(("partitions", "records"), [(1, 20_000), (8, 20_000), (10, 16_000), (32, 5_000), (900, 5_000)])
def test_consumers_keep_no_more_unpacked_the_more_partitions_there_are(partitions: int, records: int) -> None:
    """Spark has a consumer a partition, and each keeps what a batch leaves of its last poll."""
    assert polled(partitions) == records
    assert records <= READ_AHEAD_MAX
    assert records == POLL_RECORDS_MIN or partitions * records <= UNPACKED_RECORDS_MAX


def test_a_topic_whose_partitions_nobody_has_counted_may_have_many() -> None:
    """So it is read with the smallest polls."""
    assert polled() == POLL_RECORDS_MIN


def test_the_newest_count_of_a_topic_that_grew_counts() -> None:
    """Counts are kept from start to start."""
    assert polled(8, 16) == 10_000
