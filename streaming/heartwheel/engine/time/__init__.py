"""Time from the log: what the append times of a partition prove, and what a gap in them means.

Within a partition the log is ordered. So whoever has read a record with append time T has read all that stands before
it, and no clock of any machine but the broker's is looked at. Pure: no Spark, no Kafka, no clock.

- `reading`: what one task has read of one partition, on its way from the map side to every shard;
- `outage`: the rule that an outage of Kafka is no silence of its members;
- `log_time`: what a shard knows of the time of every partition.
"""

from heartwheel.engine.time.log_time import LogTime
from heartwheel.engine.time.outage import Outage, OutageKind, PartitionGap, TickSeen
from heartwheel.engine.time.reading import Reading, ReadingsBuilder, decode_readings, encode_readings

__all__ = [
    "LogTime",
    "Outage",
    "OutageKind",
    "PartitionGap",
    "Reading",
    "ReadingsBuilder",
    "TickSeen",
    "decode_readings",
    "encode_readings",
]
