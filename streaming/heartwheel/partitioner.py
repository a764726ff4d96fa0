"""Which partition a key goes to: the rule of Kafka's Java clients (`org.apache.kafka.common.utils.Utils.murmur2`)."""

from __future__ import annotations

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
        partitions: how many the topic has.
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions
