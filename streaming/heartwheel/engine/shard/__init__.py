"""The shard: one coordinator partition as columns, with a vectorised path for heartbeats and the rules for all else.

Pure: no Spark, no Kafka, no clock.
"""

from heartwheel.engine.shard.admission import Refusal
from heartwheel.engine.shard.batch import BatchResult
from heartwheel.engine.shard.figures import MemberAtRisk
from heartwheel.engine.shard.frame import CorruptBlobError, OldBlobVersionError, StateBlobError, UnknownBlobVersionError
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.shard import Shard

__all__ = [
    "BatchResult",
    "CorruptBlobError",
    "MemberAtRisk",
    "OldBlobVersionError",
    "Refusal",
    "Shard",
    "ShardLimits",
    "StateBlobError",
    "UnknownBlobVersionError",
]
