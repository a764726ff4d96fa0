"""Which shard a group belongs to: Kafka's own rule for the coordinator partition of a group."""

from __future__ import annotations

from functools import lru_cache

_UINT32 = 0xFFFFFFFF


def java_hash(text: str) -> int:
    """Compute `java.lang.String.hashCode`, over UTF-16 code units, as a signed 32-bit integer."""
    units = text.encode("utf-16-le", "surrogatepass")
    h = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (low | high << 8)) & _UINT32
    return h - (1 << 32) if h >> 31 else h


@lru_cache(maxsize=1 << 16)  # a group sends many events, and the hash is plain Python
def shard_of(group_id: str, shards: int) -> int:
    """Return the shard of a group, as `GroupCoordinatorService.partitionFor` names its partition.

    The rule is `Utils.abs(groupId.hashCode()) % partitions`.

    Args:
        group_id: the group.
        shards: how many there are; fixed for the life of a checkpoint.
    """
    h = java_hash(group_id)
    # Utils.abs gives 0 for Integer.MIN_VALUE, whose absolute value does not fit 32 bits.
    return (0 if h == -(1 << 31) else abs(h)) % shards
