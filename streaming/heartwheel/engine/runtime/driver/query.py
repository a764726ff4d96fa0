"""The streaming query of any job: its topic in, shards in the middle, one Kafka sink out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from heartwheel.engine.runtime.driver.job_config import StreamConfig
from heartwheel.engine.runtime.driver.planned_batch import READ_AHEAD_MAX
from heartwheel.engine.runtime.map.frames import LONG_RECORD_ERROR, SHORT_BYTES_MAX
from heartwheel.engine.runtime.state.schema import OUTPUT, STATE_SCHEMA
from heartwheel.engine.runtime.state.state_function import StateFunction
from heartwheel.engine.time.reading import UNTIMED_MS

SOURCE_OPTIONS: Mapping[str, str] = {
    "kafka.isolation.level": "read_committed",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    # As much as the system gives, in place of Kafka's 64 KiB: a drain is a tenth faster, and spares the broker a third.
    "kafka.receive.buffer.bytes": "-1",
    # At the end of a batch's range the consumer asks for what comes next, and the broker holds that answer back for
    # half a second by default: the next batch on that consumer would wait for it, and a task that reads several
    # partitions for each of them. Between two batches nothing is asked, so a short time costs the broker no request
    # (docs/state.md has the count).
    "kafka.fetch.max.wait.ms": "1",
    "groupIdPrefix": "heartwheel",
}
"""What the Kafka source is always given; `[kafka.client]` of the configuration comes on top."""

LOG_APPEND_TIME: Final = 1
"""What Spark's Kafka source calls the broker's append time in the column `timestampType`; its producer's is 0."""

POLL_MIN: Final = 5_000
"""Most records of a poll where any of them may be long, or where there are many partitions; see `poll_records`."""

UNPACKED_MAX: Final = 160_000
"""How many records the consumers of all partitions may keep unpacked with larger polls than that, 56 MB of short ones
of 150 bytes."""

SINK_OPTIONS: Mapping[str, str] = {
    "kafka.acks": "all",
    "kafka.linger.ms": "5",
    "kafka.batch.size": "131072",
    "kafka.compression.type": "lz4",
}
"""What the Kafka sink is always given."""


def poll_records(config: StreamConfig) -> int:
    """Return how many records a consumer gives at once.

    With each poll Spark asks Kafka twice for the bounds of the partition, so fewer polls make a drain a tenth faster.
    But what a batch leaves of a poll its consumer keeps unpacked, one consumer a partition: of short records that is
    160 MiB of values at most, and as much of keys (`test_p6_a_poll_of_short_records_has_160_mib_of_values_at_most`). A
    long one is found only after its poll was unpacked, which the 8 MiB of a fetch, as they are in the log, and its
    records bound.

    Args:
        config: the job's; one that does not know how many partitions there are gets the smallest polls.
    """
    if config.long_records or not config.counts:
        return POLL_MIN
    partitions, _ = config.counts[-1]
    return max(POLL_MIN, min(READ_AHEAD_MAX, UNPACKED_MAX // partitions))


def source_options(config: StreamConfig) -> dict[str, str]:
    """Return the options with which a job reads its topic."""
    return {
        **SOURCE_OPTIONS,
        "kafka.max.poll.records": str(poll_records(config)),
        **config.kafka_options,
        "subscribe": config.source,
        "startingOffsets": config.starting_offsets,
        "failOnDataLoss": str(config.fail_on_data_loss).lower(),
        "maxOffsetsPerTrigger": str(config.records_max),
    }


def read_topic(spark: SparkSession, config: StreamConfig) -> DataFrame:
    """Read the topic of a job, in bounded batches: a backlog carries its own time."""
    source = spark.readStream.format("kafka").options(**source_options(config)).load()
    return source.select("key", "value", "partition", "offset", append_ms())


def append_ms() -> Column:
    """Return the append time of each record as a column; of one that carries its producer's time, `UNTIMED_MS`.

    It costs no column of its own on the way to the workers: a batch of the log is of one type, and nearly all are of
    this one.
    """
    appended = F.when(F.col("timestampType") == LOG_APPEND_TIME, F.unix_millis("timestamp"))
    return appended.otherwise(F.lit(UNTIMED_MS).cast("long")).alias("append_ms")


def short_records(records: DataFrame) -> DataFrame:
    """Refuse a record with a long key or value: reading it fails with `LONG_RECORD_ERROR` and its position.

    Args:
        records: with the columns key, value, partition and offset.
    """
    # One comparison, and no part of it twice: where no code is generated, what occurs twice is kept in a cache, which
    # costs 0.7 us a record.
    longest = F.greatest(F.length("value"), F.length("key"))
    place = F.concat_ws(" ", F.lit("offset"), F.col("offset"), F.lit("of partition"), F.col("partition"))
    words = F.concat(
        F.lit(f"{LONG_RECORD_ERROR}: the record at "),
        place,
        F.lit(f" has a key or a value of more than {SHORT_BYTES_MAX:,} bytes"),
    )
    value = F.when(longest > SHORT_BYTES_MAX, F.raise_error(words).cast("binary")).otherwise(F.col("value"))
    return records.withColumn("value", value)


def advanced(
    packed: DataFrame,
    function: StateFunction,
    schema: str = OUTPUT,
    timeout: str = GroupStateTimeout.NoTimeout,
) -> DataFrame:
    """Call a state function once for every shard in every batch: each task of the map side sends every shard a row.

    Args:
        packed: rows of `PACKED`.
        function: from `state_function`.
        timeout: `ProcessingTimeTimeout` to have batches, and calls of every shard, where no rows come.
    """
    return packed.groupBy("slot").applyInPandasWithState(function, schema, STATE_SCHEMA, "append", timeout)


def observed(frame: DataFrame) -> DataFrame:
    """Add the figures of each shard to Spark's progress.

    As one column, which the driver adds up: an aggregate for each figure takes an eighth of the JVM's time of a batch
    in which little is read, as Spark plans and encodes each anew in every batch.
    """
    return frame.observe("heartwheel", F.collect_list("figures").alias("shards"))


def records(frame: DataFrame) -> DataFrame:
    """Split rows of `OUTPUT` into Kafka records: CloudEvents 1.0 in binary mode, attributes in headers."""
    # Cast as whole arrays: where no code is generated, whatever reads a single element of an array, `arrays_zip` too,
    # finds out about its type anew each time, which costs more than all else here. What a cast has made is not read so.
    parts = (
        F.col(name).cast("array<binary>").alias(name) for name in ("topics", "keys", "vals", "ids", "types", "times")
    )
    each = frame.select(F.inline(F.arrays_zip(*parts)))
    attributes = {
        "ce_specversion": F.lit("1.0").cast("binary"),
        "ce_id": F.col("ids"),
        "ce_source": F.lit("/heartwheel").cast("binary"),
        "ce_type": F.col("types"),
        "ce_time": F.col("times"),
        "content-type": F.lit("application/json").cast("binary"),
    }
    headers = F.array(*(F.struct(F.lit(name).alias("key"), value.alias("value")) for name, value in attributes.items()))
    return each.select(
        F.col("topics").cast("string").alias("topic"),
        F.col("keys").alias("key"),
        F.col("vals").alias("value"),
        headers.alias("headers"),
    )


def write(frame: DataFrame, config: StreamConfig, *, name: str, **trigger: Any) -> StreamingQuery:
    """Write output rows to their topics.

    Args:
        frame: rows of `OUTPUT`.
        name: the query's, in Spark's own log.
        trigger: the argument of `DataStreamWriter.trigger`.
    """
    return (
        records(observed(frame))
        .writeStream.queryName(name)
        .format("kafka")
        .outputMode("append")
        .options(**SINK_OPTIONS, **config.kafka_options)
        .option("checkpointLocation", config.checkpoint)
        .trigger(**trigger)
        .start()
    )
