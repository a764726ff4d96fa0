"""Time from the log: what the append times of a partition prove, and what a gap in them means.

Within a partition the log is ordered. So a reader of a record with append time T has read everything before it, and no
clock is used but the broker's. This package needs no Spark, no Kafka and no clock.

- `reading`: what one task has read from one partition; the map side sends it to every shard;
- `outage`: the rule that an outage of Kafka does not count as silence of the members;
- `log_time`: the time of every partition, as a shard knows it;
- `feeds`: the time of groups whose events a feed relays.
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
