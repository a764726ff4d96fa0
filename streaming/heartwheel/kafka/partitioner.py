"""Which partition a key goes to: the rule of Kafka's Java clients (`Utils.murmur2`)."""

from __future__ import annotations

from heartwheel.murmur2 import murmur2

__all__ = ["murmur2", "partition_of"]


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Java's default partitioner, and librdkafka's `murmur2_random`, choose for a key.

    Args:
        key: the record's key.
        partitions: how many the topic has.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
