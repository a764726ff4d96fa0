"""Which devices have fallen silent, by files that come late: each run reads the new files, and ends.

A file has a JSON object a line, such as {"device": "d1", "at": "2026-01-01T12:00:00Z"}.

    spark-submit late_files.py /data/beats /data/sessions
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from heartwheel import sessions

folder, output = sys.argv[1:]

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
# Else a query with timers has batches without rows, and never ends.
spark.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", False)
beats = spark.readStream.schema("device string, at timestamp").option("maxFilesPerTrigger", 1).json(folder)

rows = sessions(
    beats,
    key="device",
    timeout="30 minutes",
    time="at",
    wait="10 minutes",  # for events that come later than others; what is later still, gives `back` with reason `late`
)

writer = rows.writeStream.format("parquet").option("path", output)
writer.option("checkpointLocation", f"{output}/_checkpoint").trigger(availableNow=True).start().awaitTermination()
spark.read.parquet(output).select("device", "event", "at", "last_seen", "reason").orderBy("at", "device").show(
    truncate=False
)
spark.stop()
