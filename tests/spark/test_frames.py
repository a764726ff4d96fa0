"""P6: what workers get at once is bounded, whatever the records are like, and nothing is lost for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from heartwheel.engine.runtime.driver.query import append_ms, short_records
from heartwheel.engine.runtime.map.frames import BATCH_RECORDS_MAX, SHORT_BYTES_MAX, bound_batches
from heartwheel.engine.runtime.state.faults import LONG_RECORD, explain
from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.wire.event_codec import encode_event
from heartwheel.wire.events import Event
from support.job import Job, Topics, beats_of, ended
from support.verdicts import assert_exact

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

MIB = 1 << 20


def _batches(spark: SparkSession, records: int, value_bytes: int) -> list[Row]:
    """Return the sizes of the Arrow batches in which so many records come."""

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # here, so that it travels by value
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"records": [len(batch)], "bytes": [batch.nbytes]})

    values = spark.range(0, records, 1, 1).selectExpr(f"cast(repeat('x', {value_bytes}) as binary) as value")
    return values.mapInArrow(sizes, "records bigint, bytes bigint").collect()


def test_p6_batches_are_bounded_by_bytes_or_by_the_number_of_short_records(spark: SparkSession) -> None:
    """P6: by bytes an Arrow batch holds 64 MiB and one record more; else so many records, which are short."""
    for by_bytes in (True, False, True):
        bound_batches(spark, by_bytes=by_bytes)
        short = _batches(spark, BATCH_RECORDS_MAX + 7, 100)
        assert [batch.records for batch in short] == [BATCH_RECORDS_MAX, 7]
        long = _batches(spark, 100, MIB)
        assert sum(batch.records for batch in long) == 100
        assert max(batch.bytes for batch in long) < 70 * MIB if by_bytes else len(long) == 1


def test_p1_only_the_broker_says_when_a_record_was_appended(spark: SparkSession) -> None:
    """P1: of a record that carries its producer's time, or none at all, no append time goes to the workers."""
    times = "select timestamp_millis(7000) as timestamp, {} as timestampType"
    rows = [spark.sql(times.format(kind)).select(append_ms()).collect() for kind in (1, 0, -1)]
    assert rows == [[(7000,)], [(UNTIMED_MS,)], [(UNTIMED_MS,)]]


def _read(spark: SparkSession, key: Any, value: Any) -> list[Row]:
    rows = spark.createDataFrame([(key, value, 3, 41)], "key binary, value binary, partition int, offset bigint")
    return short_records(rows).collect()


@pytest.mark.parametrize("key", [None, b"", b"k" * SHORT_BYTES_MAX])
@pytest.mark.parametrize("value", [None, b"", b"v" * SHORT_BYTES_MAX])
def test_short_records_are_what_they_were(spark: SparkSession, key: bytes | None, value: bytes | None) -> None:
    """Up to the limit nothing is changed, tombstones and records without a key included."""
    assert _read(spark, key, value) == [(key, value, 3, 41)]


@pytest.mark.parametrize("other", [None, b"x"])
@pytest.mark.parametrize("long", ["key", "value"])
def test_p6_a_long_key_or_value_is_refused_by_name(spark: SparkSession, long: str, other: bytes | None) -> None:
    """P6: a byte above the limit ends whoever reads it, with its place, and is tried again for ever."""
    record = {"key": other, "value": other, long: b"x" * (SHORT_BYTES_MAX + 1)}
    with pytest.raises(PySparkException) as refused:
        _read(spark, **record)
    fault = explain(refused.value)
    assert fault.message.startswith(LONG_RECORD)
    assert "the record at offset 41 of partition 3 has a key or a value of more than 8,192 bytes" in fault.message
    assert fault.tries_max is None


def _long_beat(member: str, session_ms: int) -> bytes:
    """Encode a heartbeat that says more than anybody reads."""
    event = Event(group_id="long", member_id=member, session_timeout_ms=session_ms, client_id="c", client_host="/h")
    data = encode_event(event)
    return data[:-1] + b',"padding":"%s"}' % (b"x" * SHORT_BYTES_MAX)


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_f_a_long_record_is_read_again_and_judged_as_any_other(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """Long heartbeats, a long key and garbage of a megabyte: told once, and everybody is judged as they beat."""
    made = Topics(kafka_broker.bootstrap, topics)
    job = Job(made, tmp_path / "checkpoint")
    with ended(job.start()):
        job.until_live()
        made.send(beats_of("short", 3))
        job.wait_for(lambda: len(made.expired()) == 3, "who sends short ones to be expired")
        assert LONG_RECORD not in job.log
        made.send([_long_beat(f"long-m{i}", 1_500) for i in range(3)], key=b"long")
        made.send([b"g" * 900_000], key=b"k" * 40_000)
        job.wait_for(lambda: len(made.expired()) == 6, "who sends long ones to be expired")
        made.send([_long_beat(f"long-m{i}", 1_500) for i in range(3)], key=b"long")
        job.wait_for(lambda: len(made.expired()) == 9, "who sends long ones to be expired again")
        job.wait_for(lambda: made.rows("rejects"), "the garbage to be rejected")
        assert job.log.count(f"{LONG_RECORD} (") == 1
        assert job.stop() == 0
    (reject,) = made.rows("rejects")
    assert (reject["cause"], reject["value_bytes"]) == ("not_json", 900_000)
    assert_exact(job, due=["short", "long"], members=3)
