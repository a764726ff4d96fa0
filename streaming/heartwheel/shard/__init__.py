"""The shard: one coordinator partition as columns, with a vectorised path for heartbeats and the rules for the rest.

Pure: no Spark, no Kafka, no clock.
"""

from heartwheel.shard.admission import Refusal
from heartwheel.shard.batch import BatchResult
from heartwheel.shard.figures import AtRisk
from heartwheel.shard.frame import CorruptBlobError, OldBlobVersionError, StateBlobError, UnknownBlobVersionError
from heartwheel.shard.limits import ShardLimits
from heartwheel.shard.shard import Shard

__all__ = [
    "AtRisk",
    "BatchResult",
    "CorruptBlobError",
    "OldBlobVersionError",
    "Refusal",
    "Shard",
    "ShardLimits",
    "StateBlobError",
    "UnknownBlobVersionError",
]
