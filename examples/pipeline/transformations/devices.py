"""A declarative pipeline: which devices have fallen silent, by the new files of each run.

Spark refuses to look at a DataFrame's columns within a query function, and `sessions` must. So it is called outside.
"""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from heartwheel import sessions

spark = SparkSession.active()
beats = spark.readStream.schema("device string, at timestamp, site string").json("beats")
silent = sessions(beats, key="device", timeout="30 minutes", time="at", carry=["site"], emit=["gone", "back"])


@dp.table
def silent_devices() -> DataFrame:
    """A row for each device that has been silent for half an hour, and for each that is back."""
    return silent
