"""The shard: one coordinator partition as columns, with a vectorised path for heartbeats and the rules for the rest.

Pure: no Spark, no Kafka, no clock.
"""

from heartwheel.shard.frame import CorruptBlobError, StateBlobError, UnknownBlobVersionError
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.shard import AtRisk, Outcome, Refusal, Shard

__all__ = [
    "AtRisk",
    "CorruptBlobError",
    "Outcome",
    "Refusal",
    "Shard",
    "ShardLimits",
    "StateBlobError",
    "UnknownBlobVersionError",
]
