"""Grouping keys that spread the shards evenly over Spark's state partitions.

Spark places a grouping key by `pmod(murmur3(key), partitions)`. With the shard's number as the key, eight shards on two
partitions fall 5 to 3, and a batch takes as long as its fuller partition. So each shard gets a *slot*: the smallest
unused integer that Spark places where the shard belongs. Slots are a function of two numbers that never change while a
checkpoint lives.
"""

from __future__ import annotations

from typing import Final

_UINT32: Final = 0xFFFFFFFF
_SPARK_SEED: Final = 42


def murmur3_int(value: int) -> int:
    """Hash a 32-bit integer as Spark's `hash` function does (`Murmur3_x86_32.hashInt`), as a signed 32-bit integer."""
    k = (value & _UINT32) * 0xCC9E2D51 & _UINT32
    k = (k << 15 | k >> 17) & _UINT32
    k = k * 0x1B873593 & _UINT32
    h = _SPARK_SEED ^ k
    h = (h << 13 | h >> 19) & _UINT32
    h = h * 5 + 0xE6546B64 & _UINT32
    h ^= 4  # length in bytes
    h ^= h >> 16
    h = h * 0x85EBCA6B & _UINT32
    h ^= h >> 13
    h = h * 0xC2B2AE35 & _UINT32
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def slots_of(shards: int, partitions: int) -> tuple[int, ...]:
    """Choose the grouping key of each shard so that shard `s` lands on partition `s % partitions`.

    Args:
        partitions: how many state partitions the checkpoint has (`spark.sql.shuffle.partitions` at its first batch).
    """
    slots: list[int] = []
    for shard in range(shards):
        candidate = slots[-partitions] + 1 if shard >= partitions else 0
        while murmur3_int(candidate) % partitions != shard % partitions:
            candidate += 1
        slots.append(candidate)
    return tuple(slots)
