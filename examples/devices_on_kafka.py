"""Which devices of a Kafka topic have fallen silent, or come back, into another topic.

A record's value is such as {"device": "d1", "at": "2026-01-01T12:00:00Z", "type": "beat", "firmware": "1.2"}.

    heartwheel tick --topic device-events --bootstrap-servers localhost:9092 &
    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 devices_on_kafka.py \
        localhost:9092 device-events devices-gone /var/lib/devices-gone
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from heartwheel import sessions, tick

bootstrap, topic, output, checkpoint = sys.argv[1:]

# One shard a core is enough.
spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
records = source.option("startingOffsets", "earliest").load()
body = F.from_json(F.col("value").cast("string"), "device string, at timestamp, type string, firmware string")

gone = sessions(
    # The partition stays: in one, events are in order.
    records.select("value", "timestamp", "partition", body.alias("body")).select("*", "body.*"),
    key="device",
    timeout="30 seconds",
    time=F.coalesce("at", "timestamp"),  # a tick has no time but that of its record
    ticks=tick.is_tick("value"),
    ends=F.col("type") == "bye",
    carry=["firmware"],
    emit=["gone", "back"],
)

# The same row has the same id, should Spark write it twice.
rows = gone.select(F.col("device").alias("key"), F.to_json(F.struct("*")).alias("value"))
sink = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", output)
query = sink.option("checkpointLocation", checkpoint).trigger(processingTime="500 milliseconds").start()
query.awaitTermination()
