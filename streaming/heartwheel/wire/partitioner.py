"""Kafka's two hash rules: the partition of a key, and the shard of a group.

Clients hash keys with `org.apache.kafka.common.utils.Utils.murmur2`; a broker hashes a group's id like a Java string.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Hash bytes as Kafka does.

    Returns:
        The hash as an unsigned 32-bit integer.
    """
    whole = len(data) & ~3
    h = _SEED ^ len(data)
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        k = (k ^ k >> 24) * _MULTIPLIER & _MASK
        h = h * _MULTIPLIER & _MASK ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> 13) * _MULTIPLIER & _MASK
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition that Java's default partitioner, and librdkafka's `murmur2_random`, choose for a key.

    Args:
        key: the record's key.
        partitions: the topic's number of partitions.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def java_hash(text: str) -> int:
    """Return `java.lang.String.hashCode`, over UTF-16 code units, as a signed 32-bit integer."""
    units = text.encode("utf-16-le", "surrogatepass")
    h = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (low | high << 8)) & _MASK
    return h - (1 << 32) if h >> 31 else h


@lru_cache(maxsize=1 << 16)  # a group sends many events, and the hash is plain Python
def shard_of(group_id: str, shards: int) -> int:
    """Return the shard of a group, as `GroupCoordinatorService.partitionFor` names its partition.

    The rule is `Utils.abs(groupId.hashCode()) % partitions`.

    Args:
        group_id: the group.
        shards: the number of shards; fixed for the life of a checkpoint.
    """
    h = java_hash(group_id)
    # Utils.abs gives 0 for Integer.MIN_VALUE, whose absolute value does not fit 32 bits.
    return (0 if h == -(1 << 31) else abs(h)) % shards
